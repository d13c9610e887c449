#pragma once
// The text of --help, made from the table in cli/flags.h.

#include <string>

#include "cli/commands.h"

namespace towers::cli {

// Usage, examples, then the command's flags by group. At most 80 columns, no line break at the end.
std::string help(const CommandRow& command);

}  // namespace towers::cli
