#pragma once
// What to say of words that nothing on the command line can mean: one line each, with the nearest
// thing that would do.

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace towers::cli {

// `argument`, such as "--batchsize=3", is no flag of `command`.
std::string unknown_flag(std::string_view argument, const CommandRow& command);

// `word` stands where only flags are expected. `args`: the command line.
std::string stray_word(std::string_view word, const std::vector<std::string>& args,
                       const CommandRow& command);

// `word` is the first one of the command line `args` that is no flag, and no command.
std::string unknown_command(std::string_view word, const std::vector<std::string>& args);

}  // namespace towers::cli
