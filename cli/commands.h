#pragma once
// The commands: `towers COMMAND`.

#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.h"

namespace towers::cli {

// Bits: a flag may be of several commands.
enum CommandBit : unsigned {
  train_bit = 1,
  eval_bit = 2,
  devices_bit = 4,
  download_bit = 8,
  inspect_bit = 16,
  linear_bit = 32,
  bench_bit = 64,
  every_bit = 127,
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

// The first is the one that runs when none is named.
const std::vector<CommandRow>& commands();
// Null where there is none of that name.
const CommandRow* find_command(std::string_view name);

}  // namespace towers::cli
