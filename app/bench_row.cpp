#include "app/bench_row.h"

#include <cstdio>
#include <cstdlib>

namespace towers::app {
namespace {

using Json = nlohmann::ordered_json;

// Of every row, in this order.
const std::vector<std::string> kSettings{
    "what",        "layer",         "batch_size",  "num_gpus",
    "precision",   "allow_tf32",    "convolution", "threads",
    "pin_threads", "input_threads", "dataset",     "input",
    "backend",     "device",        "devices",     "cuda_visible_devices",
    "version"};
const std::vector<std::string> kFigures{"examples_per_sec", "median",        "lowest",
                                        "highest",          "uncertainty",   "jitter",
                                        "repeats",          "steps",         "ms_per_step",
                                        "forward_ms",       "backward_ms",   "gflops",
                                        "executed_gflops",  "share_of_peak", "mbytes_per_step",
                                        "gbytes_per_sec",   "peak_gflops",   "peak_gbytes_per_sec",
                                        "input_share"};

struct Column {
  std::string title;
  int width;  // below 0: to the left
  std::string text;
};

Json empty_row() {
  Json row;
  for (const std::string& name : bench_columns()) row[name] = nullptr;
  return row;
}

std::string number(const Json& value, int decimals) {
  if (value.is_null()) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value.get<double>());
  return text;
}

std::string percent(const Json& share) {
  return share.is_null() ? "" : number(100 * share.get<double>(), 1) + " %";
}

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// As tf_cnn_benchmarks prints a rate.
std::string rate(const Json& row) {
  if (row["examples_per_sec"].is_null()) return "";
  return number(row["examples_per_sec"], 1) + " +/- " + number(row["uncertainty"], 1) +
         " (jitter = " + number(row["jitter"], 1) + ")";
}

std::vector<Column> columns_of(const std::string& what, const Json& row) {
  std::vector<Column> columns{{"batch", 6, plain(row["batch_size"])},
                              {"towers", 6, plain(row["num_gpus"])}};
  if (what != "input") {
    columns.push_back({"precision", 9, plain(row["precision"])});
    columns.push_back({"convolution", 11, plain(row["convolution"])});
  }
  columns.push_back({"threads", 7, plain(row["threads"])});
  if (what == "layers") {
    columns.push_back({"layer", -14, plain(row["layer"])});
    columns.push_back({"forward ms", 10, number(row["forward_ms"], 3)});
    columns.push_back({"backward ms", 11, number(row["backward_ms"], 3)});
  } else {
    columns.push_back({"examples/sec", -36, rate(row)});
    columns.push_back({"median", 9, number(row["median"], 1)});
  }
  if (what != "input") {
    columns.push_back({"GFLOP/s", 8, number(row["gflops"], 1)});
    columns.push_back({"executed", 8, number(row["executed_gflops"], 1)});
    columns.push_back({"of peak", 7, percent(row["share_of_peak"])});
    columns.push_back({"GB/s", 6, number(row["gbytes_per_sec"], 1)});
  }
  if (what == "train") columns.push_back({"input", 7, percent(row["input_share"])});
  return columns;
}

std::string padded(const std::string& text, int width) {
  char line[256];
  std::snprintf(line, sizeof line, "%*s", width, text.c_str());
  return line;
}

std::string line_of(const std::vector<Column>& columns, std::string Column::*part) {
  std::string line;
  for (const Column& c : columns) line += (line.empty() ? "" : "  ") + padded(c.*part, c.width);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

Json bench_settings(const BenchCase& c, const Backend& backend) {
  const std::string& what = c.options.what;
  const bool computes = what != "input";
  const bool reads = what == "input" || what == "train";
  const bool on_cpu = backend.devices().front().kind == DeviceKind::cpu;
  int threads = 0;
  for (const Device& d : backend.devices()) threads += d.threads;
  const int input_threads = c.options.input_threads.value_or(1);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");

  Json settings = empty_row();
  settings["what"] = what;
  if (what == "layers") settings["layer"] = kAllLayers;
  settings["batch_size"] = c.options.batch_size;
  settings["num_gpus"] = c.towers;
  settings["precision"] = computes ? Json(c.options.precision) : Json();
  settings["allow_tf32"] = computes ? Json(c.options.allow_tf32) : Json();
  settings["convolution"] = computes ? Json(c.convolution) : Json();
  settings["threads"] = computes ? threads : input_threads;
  settings["pin_threads"] = on_cpu && computes ? Json(c.options.pin_threads) : Json();
  settings["input_threads"] = reads ? Json(input_threads) : Json();
  settings["dataset"] = reads ? Json(c.options.dataset) : Json();
  settings["input"] = what == "train" ? Json(c.options.input) : Json();
  settings["backend"] = backend.description();
  settings["device"] = backend.devices().front().description;
  settings["devices"] = backend.devices().size();
  settings["cuda_visible_devices"] = visible == nullptr ? Json() : Json(visible);
  settings["version"] = TOWERS_VERSION;
  return settings;
}

Json bench_row(const Json& settings, const BenchCase& c, const Measurement& m,
               const MachinePeak& peak) {
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  const double examples = static_cast<double>(c.options.batch_size) * c.towers;
  Json row = settings;
  if (!m.layer.empty()) row["layer"] = m.layer;
  row["examples_per_sec"] = known(m.rates.mean);
  row["median"] = known(m.rates.median);
  row["lowest"] = known(m.rates.lowest);
  row["highest"] = known(m.rates.highest);
  // One layer has a mean alone.
  row["uncertainty"] = m.rates.median > 0 ? Json(m.rates.uncertainty) : Json();
  row["jitter"] = m.rates.median > 0 ? Json(m.rates.jitter) : Json();
  row["repeats"] = c.options.repeats;
  row["steps"] = m.steps;
  row["ms_per_step"] = known(1e3 * m.seconds / static_cast<double>(m.steps));
  row["forward_ms"] = m.layer.empty() ? Json() : Json(1e3 * m.forward_seconds);
  row["backward_ms"] = m.layer.empty() ? Json() : Json(1e3 * m.backward_seconds);
  const double steps_per_second = static_cast<double>(m.steps) / m.seconds;
  const double executed = m.executed * examples * steps_per_second;
  row["gflops"] = known(1e-9 * m.operations * examples * steps_per_second);
  row["executed_gflops"] = known(1e-9 * executed);
  // The peak is fp32's, and bytes are counted as fp32 has them.
  const bool fp32 = c.options.precision == "fp32";
  row["share_of_peak"] = fp32 && peak.flops > 0 ? known(executed / peak.flops) : Json();
  row["mbytes_per_step"] = fp32 ? known(1e-6 * m.bytes) : Json();
  row["gbytes_per_sec"] = fp32 ? known(1e-9 * m.bytes * steps_per_second) : Json();
  row["peak_gflops"] = known(1e-9 * peak.flops);
  row["peak_gbytes_per_sec"] = known(1e-9 * peak.bytes);
  row["input_share"] = settings["what"] == "train" ? Json(m.input_share) : Json();
  return row;
}

const std::vector<std::string>& bench_setting_names() {
  return kSettings;
}

std::vector<std::string> bench_columns() {
  std::vector<std::string> names = kSettings;
  names.insert(names.end(), kFigures.begin(), kFigures.end());
  return names;
}

std::string bench_line(const Json& row) {
  return line_of(columns_of(row["what"].get<std::string>(), row), &Column::text);
}

std::string bench_machine(const Json& row) {
  std::string text = plain(row["device"]) + " (" + plain(row["backend"]) + ")";
  if (!row["peak_gflops"].is_null())
    text += "; at most " + number(row["peak_gflops"], 0) + " fp32 GFLOP/s and " +
            number(row["peak_gbytes_per_sec"], 0) + " GB/s from memory, measured";
  return text;
}

std::string bench_header(const std::string& what) {
  return line_of(columns_of(what, empty_row()), &Column::title);
}

}  // namespace towers::app
