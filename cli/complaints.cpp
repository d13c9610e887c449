#include "cli/complaints.h"

#include <cstddef>

#include "cli/flags.h"
#include "cli/nearest.h"
#include "cli/spelling.h"

namespace towers::cli {
namespace {

std::string in_quotes(std::string_view word) {
  return std::string("'").append(printable(word)) + "'";
}

std::string see_help(const CommandRow& command) {
  return "see `towers " + command.name + " --help`";
}

// "`towers eval`", "`towers devices` and `towers inspect`", or more with commas
std::string owners(const Flag& flag) {
  unsigned accepted = 0;
  for (const Flag& row : flags())
    if (row.name == flag.name) accepted |= row.accepted;
  std::string list, last;
  for (const CommandRow& row : commands()) {
    if ((accepted & row.bit) == 0) continue;
    if (!last.empty()) list += (list.empty() ? "" : ", ") + last;
    last = "`towers " + row.name + "`";
  }
  return list + (list.empty() ? "" : " and ") + last;
}

// Names as typed: with "no" in front where that switches something off.
std::vector<std::string> names(const CommandRow& command, bool of_command, bool negated) {
  std::vector<std::string> result;
  for (const Flag& flag : flags()) {
    if (((flag.accepted & command.bit) != 0) != of_command) continue;
    if (!negated) result.push_back(flag.name);
    if (negated && flag.value.boolean) result.push_back("no" + flag.name);
  }
  return result;
}

// "--resume true": the word would be the value of the switch in front of it.
std::string after_switch(std::string_view word, const std::vector<std::string>& args) {
  if (!read_boolean(word)) return "";
  for (std::size_t i = 1; i < args.size(); ++i) {
    const Argument before = take_apart(args[i - 1]);
    if (args[i] != word || !before.flag || before.has_value) continue;
    const Flag* flag = find_flag(before.name);
    if (flag == nullptr || !flag->value.boolean) continue;
    return "unexpected " + in_quotes(word) + " after --" + flag->name + ": write --" + flag->name +
           "=" + std::string(word);
  }
  return "";
}

}  // namespace

std::string unknown_flag(std::string_view argument, const CommandRow& command) {
  const Argument apart = take_apart(argument);
  const bool negated = apart.name.starts_with("no");
  const Flag* elsewhere = find_flag(apart.name);
  if (elsewhere == nullptr && negated) elsewhere = find_flag(apart.name.substr(2));
  if (elsewhere != nullptr) {
    return "--" + apart.name + " belongs to " + owners(*elsewhere) + ", not to `towers " +
           command.name + "`";
  }
  std::vector<std::string> candidates = names(command, true, false);
  if (negated) {
    const auto off = names(command, true, true);
    candidates.insert(candidates.end(), off.begin(), off.end());
  }
  const std::string unknown = "unknown flag --" + printable(apart.name);
  if (const auto near = nearest(apart.name, candidates); !near.empty()) {
    return unknown + "; did you mean --" + near + "?";
  }
  if (const auto near = nearest(apart.name, names(command, false, false)); !near.empty()) {
    return unknown + "; did you mean --" + near + " of " + owners(*find_flag(near)) + "?";
  }
  return unknown + "; " + see_help(command);
}

std::string stray_word(std::string_view word, const std::vector<std::string>& args,
                       const CommandRow& command) {
  if (const auto text = after_switch(word, args); !text.empty()) return text;
  return "unexpected " + in_quotes(word) + "; " + see_help(command);
}

std::string unknown_command(std::string_view word, const std::vector<std::string>& args) {
  if (const auto text = after_switch(word, args); !text.empty()) return text;
  std::vector<std::string> candidates;
  std::string list;
  for (const CommandRow& row : commands()) {
    candidates.push_back(row.name);
    list += (list.empty() ? "" : ", ") + row.name;
  }
  candidates.push_back("help");
  const std::string unknown = "unknown command " + in_quotes(word);
  if (const auto near = nearest(word, candidates); !near.empty()) {
    return unknown + "; did you mean " + near + "?";
  }
  return unknown + "; there are " + list + " and help";
}

}  // namespace towers::cli
