#pragma once
// The one table of flags. Parser, help and flagfile are made from it: a new flag is a field in
// cli/options.h and a row in the cli/flags_*.cpp of its kind.

#include <string>
#include <string_view>
#include <vector>

#include "cli/values.h"

namespace towers::cli {

enum class Group {
  run,
  sweep,
  cluster,
  exchange,
  evaluation,
  data,
  optimization,
  devices,
  output,
  general
};
std::string_view title(Group group);

// A name may stand in several rows, of different commands: what is one number to most is a list to
// bench. All rows of a name are switches, or none is.
struct Flag {
  std::string name;
  Group group = Group::general;
  unsigned accepted = 0;  // by these commands (CommandBit)
  unsigned used = 0;      // by these, and listed in their help
  Value value;
  std::string help;
};

const std::vector<Flag>& flags();
// The first of that name, null where there is none. Commands may each have a flag of one name, with
// a default of its own.
const Flag* find_flag(std::string_view name);

}  // namespace towers::cli
