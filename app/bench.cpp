// `towers bench`: each combination of the flags' lists is measured and becomes a row, as it comes.

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "app/backend_choice.h"
#include "app/bench_case.h"
#include "app/bench_row.h"
#include "app/commands.h"
#include "app/setup.h"
#include "app/sweep_file.h"
#include "cli/console.h"
#include "core/error.h"
#include "core/models/cifar10.h"
#include "cpu/peak.h"

namespace towers::app {
namespace {

using Json = nlohmann::ordered_json;

class Bench {
 public:
  explicit Bench(const cli::BenchOptions& options)
      : options_(options),
        cases_(bench_cases(options)),
        net_(cifar10_net()),
        file_(options.csv, bench_columns()) {
    if (options.what == "input" || options.what == "train")
      dataset_ = load_dataset(options, data::Split::train);
  }

  // False when a combination could not be measured.
  bool run() {
    bool all_well = true;
    int left_out = 0;
    for (const BenchCase& c : cases_) {
      if (cli::stdout_closed()) break;
      std::vector<Json> rows;
      try {
        const std::unique_ptr<Backend> backend = make_backend(c.options);
        const Json settings = bench_settings(c, *backend);
        if (file_.holds(settings, bench_setting_names())) {
          ++left_out;
          continue;
        }
        rows = measured(c, settings, *backend);
      } catch (const Error& error) {
        // At the first one nothing is lost: a wrong flag ends the command as it does elsewhere.
        if (&c == &cases_.front() && dynamic_cast<const UsageError*>(&error) != nullptr) throw;
        // The rest of a sweep may take hours and does not depend on this one.
        cli::log_error(name_of(c) + ": " + error.what());
        all_well = false;
        continue;
      } catch (const std::bad_alloc&) {
        cli::log_error(name_of(c) + ": not enough memory; lower --batch_size or --num_gpus");
        all_well = false;
        continue;
      }
      // What cannot be kept or shown ends the sweep: that of the others could not be either.
      try {
        file_.add(rows);
      } catch (const Error&) {
        show(rows);
        throw;
      }
      show(rows);
    }
    if (left_out > 0)
      cli::log_info(std::to_string(left_out) + " of " + std::to_string(cases_.size()) +
                    " combinations are in " + options_.csv + " already");
    return all_well;
  }

 private:
  // Of the lists that have several values, or may be too large, the combination's.
  std::string name_of(const BenchCase& c) const {
    std::string name = "--batch_size=" + std::to_string(c.options.batch_size) +
                       " --num_gpus=" + std::to_string(c.towers) +
                       " --precision=" + c.options.precision;
    if (options_.convolutions.size() > 1) name += " --convolution=" + c.convolution;
    if (options_.thread_counts.size() > 1)
      name += " --compute_threads=" + std::to_string(c.options.compute_threads);
    if (options_.input_thread_counts.size() > 1)
      name += " --input_threads=" + std::to_string(*c.options.input_threads);
    return name;
  }

  std::vector<Json> measured(const BenchCase& c, const Json& settings, Backend& backend) {
    if (!peaks_.contains(c.options.compute_threads)) measure_peak(c, backend);
    const std::vector<Measurement> measurements = measure(c, backend);
    const MachinePeak peak = measure_peak(c, backend);
    std::vector<Json> rows;
    for (const Measurement& m : measurements) rows.push_back(bench_row(settings, c, m, peak));
    return rows;
  }

  std::vector<Measurement> measure(const BenchCase& c, Backend& backend) {
    if (options_.what == "input") return {measure_input(c, dataset_, backend)};
    if (options_.what == "train") return {measure_train(c, net_, dataset_, backend)};
    if (options_.what == "layers") return measure_layers(c, net_, backend);
    return {measure_step(c, net_, backend)};
  }

  // The best seen so far: a shared machine changes its speed, so it is asked before the first and
  // after each measurement.
  MachinePeak measure_peak(const BenchCase& c, const Backend& backend) {
    if (options_.what == "input" || backend.devices().front().kind != DeviceKind::cpu) return {};
    const cpu::Peak peak = cpu::measure_peak(cpu_options(c.options));
    MachinePeak& best = peaks_[c.options.compute_threads];
    best = {std::max(best.flops, peak.flops), std::max(best.bytes, peak.bytes)};
    return best;
  }

  void show(const std::vector<Json>& rows) {
    for (const Json& row : rows) {
      if (options_.json) {
        cli::print_line(row.dump(-1, ' ', false, Json::error_handler_t::replace));
        continue;
      }
      show_machine(row);
      cli::print_line(bench_line(row));
    }
  }

  // Once above the first row of each backend: every number of threads has limits of its own.
  void show_machine(const Json& row) {
    const bool first = shown_.empty();
    const bool is_new = shown_.insert(row["backend"].dump()).second;
    if (is_new && !options_.quiet) cli::print_line(bench_machine(row));
    if (first) cli::print_line(bench_header(options_.what));
  }

  cli::BenchOptions options_;
  std::vector<BenchCase> cases_;
  Net net_;
  SweepFile file_;
  data::Dataset dataset_;             // where --what reads it
  std::map<int, MachinePeak> peaks_;  // by number of threads
  std::set<std::string> shown_;       // backends
};

}  // namespace

int run_bench(const cli::BenchOptions& options) {
  return Bench(options).run() ? 0 : 1;
}

}  // namespace towers::app
