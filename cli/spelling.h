#pragma once
// TensorFlow's spellings of flags, turned into the one that the parser proper understands.

#include <string>
#include <string_view>
#include <vector>

namespace towers::cli {

// "--batch_size=64" taken apart. No flags are "-", "--", "-1", "-.5" and plain words.
struct Argument {
  bool flag = false;
  std::string name;
  bool has_value = false;
  std::string value;
};
Argument take_apart(std::string_view text);

// Arguments in plain spelling: "--name=value" ("--name" and "" where that is empty), "--switch",
// "--noswitch", "--switch=value". Unknown flags and other words pass through.
struct Spelled {
  std::vector<std::string> words;
  std::vector<std::string> behind;  // what stands behind "--": words, whatever they look like
  std::string unknown;              // the first flag that no command has, or empty
  bool has_command = false;
  std::string command;  // the first word that is no flag, and no value of one; not in `words`
  bool help = false, version = false;
};

// Throws UsageError where a spelling cannot be meant: a switch with an empty value,
// --noswitch=value,
// --no before a flag that takes a value, a flag in the place of a value.
Spelled spell(const std::vector<std::string>& args);

}  // namespace towers::cli
