#pragma once
// The commands: `towers COMMAND`.

#include <cstddef>
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
  export_bit = 128,
  import_bit = 256,
  predict_bit = 512,
  completion_bit = 1024,
  every_bit = 2047,
};

struct CommandRow {
  CommandBit bit = train_bit;
  std::string name;
  std::string summary;  // one line
  std::string usage;    // what follows "towers"
  std::vector<std::string> examples;
  std::string argument;         // the kind of word that the command takes, or empty
  Command (*make)() = nullptr;  // its options with their defaults
  std::size_t fewest_arguments = 1, most_arguments = 1;  // where it takes any
  std::vector<std::string> words = {};                   // that the argument may be, where not any
};

// The first is the one that runs when none is named.
const std::vector<CommandRow>& commands();
// Null where there is none of that name.
const CommandRow* find_command(std::string_view name);

}  // namespace towers::cli
