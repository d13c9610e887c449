#include "cli/spelling.h"

#include <cstddef>
#include <utility>

#include "cli/flags.h"
#include "core/error.h"

namespace towers::cli {
namespace {

std::string plain(const Argument& argument) {
  return "--" + argument.name + (argument.has_value ? "=" + argument.value : "");
}

void add_switch(Spelled& spelled, const Argument& argument) {
  if (argument.has_value && argument.value.empty()) {
    throw UsageError("--" + argument.name + "=: expected true or false after the equals sign");
  }
  const bool on = !argument.has_value || read_boolean(argument.value).value_or(false);
  spelled.help |= on && argument.name == "help";
  spelled.version |= on && argument.name == "version";
  spelled.words.push_back(plain(argument));
}

void add_switched_off(Spelled& spelled, const Argument& argument, const Flag& flag) {
  if (!flag.value.boolean) {
    throw UsageError("--" + argument.name + ": --" + flag.name +
                     " cannot be switched off, it takes " + flag.value.expected);
  }
  if (argument.has_value) {
    throw UsageError("--" + argument.name + " takes no value: write --" + argument.name + " or --" +
                     flag.name + "=" + printable(argument.value));
  }
  spelled.words.push_back(plain(argument));
}

// next: the argument behind it, or null. True: that one is the value.
bool add_value(Spelled& spelled, const Argument& argument, const Flag& flag,
               const std::string* next) {
  if (!argument.has_value && next == nullptr) {
    throw UsageError("--" + flag.name + " needs a value: expected " + flag.value.expected);
  }
  // Taking it would make a folder called --resume.
  if (!argument.has_value && take_apart(*next).flag) {
    throw UsageError("--" + flag.name + " needs a value (" + flag.value.expected +
                     "), and a flag follows: " + printable(*next));
  }
  const std::string& value = argument.has_value ? argument.value : *next;
  if (value.empty()) {
    // The parser proper takes "--name=" for a flag without a value.
    spelled.words.insert(spelled.words.end(), {"--" + flag.name, value});
  } else {
    spelled.words.push_back("--" + flag.name + "=" + value);
  }
  return !argument.has_value;
}

}  // namespace

Argument take_apart(std::string_view text) {
  const auto dashes = text.find_first_not_of('-');
  if (dashes == 0 || dashes > 2) return {};
  if (text[dashes] == '.' || (text[dashes] >= '0' && text[dashes] <= '9')) return {};
  text.remove_prefix(dashes);
  const auto equals = text.find('=');
  Argument result;
  result.flag = true;
  result.name = text.substr(0, equals);
  result.has_value = equals != std::string_view::npos;
  if (result.has_value) result.value = text.substr(equals + 1);
  if (result.name == "h") result.name = "help";
  return result;
}

Spelled spell(const std::vector<std::string>& args) {
  Spelled spelled;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") {
      spelled.behind.assign(args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      break;
    }
    const Argument argument = take_apart(args[i]);
    const Flag* flag = argument.flag ? find_flag(argument.name) : nullptr;
    const Flag* off =
        argument.name.starts_with("no") ? find_flag(argument.name.substr(2)) : nullptr;
    if (flag != nullptr && flag->value.boolean) {
      add_switch(spelled, argument);
    } else if (flag != nullptr) {
      const bool taken =
          add_value(spelled, argument, *flag, i + 1 < args.size() ? &args[i + 1] : nullptr);
      if (taken) ++i;
    } else if (off != nullptr) {
      add_switched_off(spelled, argument, *off);
    } else if (argument.flag) {
      if (spelled.unknown.empty()) spelled.unknown = args[i];
      spelled.words.push_back(plain(argument));
    } else if (!spelled.has_command) {
      spelled.has_command = true;
      spelled.command = args[i];
    } else {
      spelled.words.push_back(args[i]);
    }
  }
  return spelled;
}

}  // namespace towers::cli
