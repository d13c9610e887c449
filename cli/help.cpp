#include "cli/help.h"

#include <algorithm>
#include <cstddef>
#include <sstream>

#include "cli/flags.h"

namespace towers::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kFlagColumn = 30;
constexpr std::size_t kCommandColumn = 14;

// `first`, and `text` from column `indent` on.
std::string wrapped(const std::string& first, std::size_t indent, const std::string& text) {
  std::string result, line = first;
  line.append(indent - std::min(indent, first.size()), ' ');
  std::istringstream words(text);
  bool line_has_word = false;
  for (std::string word; words >> word;) {
    if (line_has_word && line.size() + 1 + word.size() > kColumns) {
      result += line + "\n";
      line.assign(indent, ' ');
      line_has_word = false;
    }
    if (line_has_word) line += ' ';
    line += word;
    line_has_word = true;
  }
  return result + line + "\n";
}

std::string spelling(const Flag& flag) {
  const std::string& placeholder = flag.value.placeholder;
  // A switch that is on by default is met as --noflag; one that is off, as --flag.
  const bool on = flag.value.default_text == "true";
  return "  --" + std::string(flag.value.boolean && on ? "[no]" : "") + flag.name +
         (placeholder.empty() ? "" : "=" + placeholder);
}

// A flag of all commands that does nothing for this one.
bool idle(const Flag& flag, const CommandRow& command) {
  return (flag.accepted & command.bit) != 0 && (flag.used & command.bit) == 0;
}

std::string explanation(const Flag& flag) {
  std::string text = flag.help;
  if (!flag.value.choices.empty()) text += ": " + flag.value.expected;
  if (!flag.value.default_text.empty()) text += " [" + flag.value.default_text + "]";
  return text;
}

}  // namespace

std::string help(const CommandRow& command) {
  std::string text = "Usage: towers " + command.usage + "\n\n" + command.summary + ".\n\n";
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  if (&command == &commands().front()) {
    text += "\nOther commands (towers COMMAND --help lists their flags)\n";
    for (const CommandRow& row : commands()) {
      if (&row != &command) text += wrapped("  " + row.name, kCommandColumn, row.summary);
    }
    text += wrapped("  help", kCommandColumn,
                    "Explains a command; `towers help man` prints the manual page");
  }
  for (int group = 0; group <= static_cast<int>(Group::general); ++group) {
    std::string lines;
    for (const Flag& flag : flags()) {
      if (static_cast<int>(flag.group) != group || (flag.used & command.bit) == 0) continue;
      lines += wrapped(spelling(flag), kFlagColumn, explanation(flag));
    }
    if (lines.empty()) continue;
    text.append("\n").append(title(static_cast<Group>(group))).append("\n").append(lines);
  }
  std::string others;
  for (const Flag& flag : flags()) {
    if (idle(flag, command)) others += (others.empty() ? "--" : ", --") + flag.name;
  }
  if (!others.empty()) {
    text.append("\n").append(wrapped("", 0, "Accepted too, without effect here: " + others));
  }
  text +=
      "\nDefaults are in brackets. A flag is written --flag=value or --flag value, a\n"
      "switch --flag, --flag=true, --flag=false or --noflag; one dash works too.";
  return text;
}

}  // namespace towers::cli
