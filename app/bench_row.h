#pragma once
// A row of a sweep: one schema for JSON lines, the CSV file and the table on stdout.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/bench_case.h"
#include "core/backend.h"

namespace towers::app {

// What `device` and the figures held against can do at most; 0 where it is not measured.
struct MachinePeak {
  double flops = 0;  // fp32, per second
  double bytes = 0;  // read from memory, per second
};

// Every row has the same names in the same order; null is what is not known or does not matter.

// Names of a row's values: the settings, which make two rows measurements of the same thing; and
// all, the settings first.
const std::vector<std::string>& bench_setting_names();
std::vector<std::string> bench_columns();

// The layer of the row that is about the whole step, the last one of --what=layers.
inline constexpr const char* kAllLayers = "all";

// A row with the settings alone (those of its last row where --what=layers makes several).
nlohmann::ordered_json bench_settings(const BenchCase& c, const Backend& backend);

// `settings` with the figures.
nlohmann::ordered_json bench_row(const nlohmann::ordered_json& settings, const BenchCase& c,
                                 const Measurement& m, const MachinePeak& peak);

// The machine that a row is of, and what it can do at most, in one line for a person.
std::string bench_machine(const nlohmann::ordered_json& row);

// A row as a line of the table on stdout, whose columns depend on --what, and the line above all.
std::string bench_line(const nlohmann::ordered_json& row);
std::string bench_header(const std::string& what);

}  // namespace towers::app
