#pragma once
// Inside cli/: what the rows of the one table of flags (cli/flags.h) are written with, and its
// groups, each in the file of its kind.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/options.h"
#include "cli/values.h"

namespace towers::cli {

// cli/flags_training.cpp
std::vector<Flag> run_flags();
std::vector<Flag> optimization_flags();
std::vector<Flag> output_flags();
// cli/flags_common.cpp
std::vector<Flag> data_flags();
std::vector<Flag> device_flags();
std::vector<Flag> general_flags();
// cli/flags_cluster.cpp
std::vector<Flag> linear_flags();
std::vector<Flag> cluster_flags();
// cli/flags_tools.cpp
std::vector<Flag> evaluation_flags();
std::vector<Flag> bench_flags();
std::vector<Flag> exchange_flags();

inline bool anything(std::string_view) {
  return true;
}
inline bool not_empty(std::string_view text) {
  return !text.empty();
}

template <class Options>
Value folder(std::string Options::*field) {
  return text(field, "DIR", "the name of a folder", not_empty);
}

// Empty: none.
template <class Options>
Value file(std::string Options::*field) {
  return text(field, "FILE", "the name of a file", anything);
}

inline Value with_default_text(Value value, std::string shown) {
  value.default_text = std::move(shown);
  return value;
}

// A flag that every command accepts, so that one flagfile serves them all; help lists it where it
// does something.
inline Flag common(std::string name, Group group, unsigned used, Value value, std::string help) {
  return {std::move(name), group, every_bit, used, std::move(value), std::move(help)};
}

inline Flag only(std::string name, Group group, unsigned commands, Value value, std::string help) {
  return {std::move(name), group, commands, commands, std::move(value), std::move(help)};
}

inline const std::vector<std::string> kPrecisions{"fp32", "bf16", "fp16", "fp64"};
inline const std::vector<std::string> kConvolutions{"auto", "winograd4", "winograd2", "direct"};

}  // namespace towers::cli
