#pragma once
// Completion scripts for shells, made from the tables of commands and flags.

#include <string>
#include <string_view>

namespace towers::cli {

// Of "bash", "zsh" or "fish": the script's text, without a line break at its end. Commands, the
// flags that do something for each, and their values: choices, folders, files.
// Throws UsageError for other shells.
std::string completion_script(std::string_view shell);

}  // namespace towers::cli
