// towers: data-parallel CIFAR-10 training, one tower per device.
//
//   $ towers --num_gpus=2 --max_steps=100000 --train_dir=/tmp/run
//   2026-12-01 10:11:12.345678: step 0, loss = 4.68 (1834.5 examples/sec; 0.070 sec/batch)
//   2026-12-01 10:11:13.045678: step 10, loss = 4.62 (1834.5 examples/sec; 0.070 sec/batch)
//
// This file decides which command runs, and turns an error that nobody on the way could answer into
// a line and an exit code.

#include <malloc.h>

#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "app/commands.h"
#include "app/failure.h"
#include "app/setup.h"
#include "app/signals.h"
#include "cli/completion.h"
#include "cli/console.h"
#include "cli/parse.h"

namespace towers::app {
namespace {

// Buffers of the model's size (4.27 MB) go back to the system when they are freed. Left to itself,
// glibc soon keeps them on its heap, which then has gaps, and a run's memory grows by megabytes.
// Naming one limit would fix the other at 128 kB, and every message of a cluster would fault its
// pages in again: half the rate of an exchange.
void give_back_large_buffers() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

struct Run {
  const cli::Parsed& parsed;

  int operator()(const cli::Information& information) const {
    cli::print_line(information.text);
    return 0;
  }
  int operator()(const cli::TrainOptions& o) const { return run_train(start(o), parsed); }
  int operator()(const cli::EvalOptions& o) const { return run_eval(start(o)); }
  int operator()(const cli::DevicesOptions& o) const { return run_devices(start(o)); }
  int operator()(const cli::DownloadOptions& o) const { return run_download(start(o)); }
  int operator()(const cli::InspectOptions& o) const { return run_inspect(start(o)); }
  int operator()(const cli::LinearOptions& o) const { return run_linear(start(o)); }
  int operator()(const cli::BenchOptions& o) const { return run_bench(start(o)); }
  int operator()(const cli::ExportOptions& o) const { return run_export(start(o)); }
  int operator()(const cli::ImportOptions& o) const { return run_import(start(o)); }
  int operator()(const cli::PredictOptions& o) const { return run_predict(start(o)); }
  int operator()(const cli::CompletionOptions& o) const {
    cli::print_line(cli::completion_script(start(o).arguments.front()));
    return 0;
  }

  template <class Options>
  static const Options& start(const Options& options) {
    cli::set_log_level(options.log_level, options.quiet);
    return options;
  }
};

}  // namespace
}  // namespace towers::app

int main(int argc, char** argv) {
  using namespace towers;
  try {
    app::give_back_large_buffers();
    cli::prepare_standard_streams();
    app::prepare_signals();
    const cli::Parsed parsed =
        cli::parse(std::vector<std::string>(argv + 1, argv + argc), app::version_text);
    return std::visit(app::Run{parsed}, parsed.command);
  } catch (const std::exception&) {
    const app::Failure failure = app::current_failure();
    if (!failure.text.empty()) cli::log_error(failure.text);
    return failure.exit_code;
  }
}
