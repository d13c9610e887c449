#pragma once
// The manual page, made from the tables of commands and flags.

#include <string>

namespace towers::cli {

// towers(1) in the macros of man(7), without a line break at its end.
std::string man_page();

}  // namespace towers::cli
