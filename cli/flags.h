#pragma once
// The one table of commands and flags. Parser, help and flagfile are made from it: a new flag is a
// field in cli/options.h and a row here.

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/parse.h"
#include "cli/values.h"

namespace towers::cli {

// Bits: a flag may be of several commands.
enum CommandBit : unsigned {
  train_bit = 1,
  eval_bit = 2,
  devices_bit = 4,
  download_bit = 8,
  inspect_bit = 16,
  every_bit = 31,
};

struct CommandRow {
  CommandBit bit = train_bit;
  std::string name;
  std::string summary;  // one line
  std::string usage;    // what follows "towers"
  std::vector<std::string> examples;
  std::string argument;         // the word that the command takes, or empty
  Command (*make)() = nullptr;  // its options with their defaults
};

enum class Group { run, data, optimization, devices, output, evaluation, general };
std::string_view title(Group group);

struct Flag {
  std::string name;
  Group group = Group::general;
  unsigned accepted = 0;  // by these commands
  unsigned used = 0;      // by these, and listed in their help
  Value value;
  std::string help;
};

// The first is the one that runs when none is named.
const std::vector<CommandRow>& commands();
const std::vector<Flag>& flags();

// Null where there is none of that name.
const CommandRow* find_command(std::string_view name);
const Flag* find_flag(std::string_view name);

}  // namespace towers::cli
