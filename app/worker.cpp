// `towers train` as a worker of a cluster: the training loop, its variables on parameter servers.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/signals.h"
#include "app/start_table.h"
#include "app/step_clock.h"
#include "app/step_output.h"
#include "app/watchdog.h"
#include "app/worker_run.h"
#include "cli/console.h"
#include "core/error.h"
#include "cpu/backend.h"

namespace towers::app {
namespace {

// Every `every` steps. A worker does not see each global step, so what is due at one that it missed
// is due at its next.
class Due {
 public:
  Due(std::int64_t every, std::int64_t first_step)
      : every_(every), next_(at_or_after(first_step)) {}

  bool at(std::int64_t step) const { return step >= next_; }
  void done(std::int64_t step) { next_ = at_or_after(step + 1); }

 private:
  std::int64_t at_or_after(std::int64_t step) const {
    if (every_ <= 0) return std::numeric_limits<std::int64_t>::max();
    return (step + every_ - 1) / every_ * every_;
  }

  std::int64_t every_, next_;
};

struct Dues {
  Dues(const cli::TrainOptions& options, std::int64_t step)
      : show(options.display_every, step),
        summary(options.summary_every, step),
        save(options.checkpoint_every, step),
        test(options.eval_every, std::max(step, std::int64_t{1})) {}
  Due show, summary, save, test;
};

// What the servers have, as a checkpoint.
void save(WorkerRun& run, StepClock& clock) {
  const bool came = run.fetch();
  clock.lap(Phase::averaging, Awaited::disk);
  if (came)
    run.save();
  else
    cli::log_error("the servers did not give the variables for a last checkpoint; the newest is " +
                   run.files()->last_checkpoint());
  clock.lap(Phase::saving);
}

// Until max_steps updates are made, or a signal, the time limit, or nobody reads stdout any more;
// returns the last step that this worker saw, or one less than the first where it made none.
std::int64_t worker_loop(WorkerRun& run, const StepOutput& output, StepClock& clock) {
  const cli::TrainOptions& options = run.options();
  Towers& towers = run.towers();
  RunFiles* const files = run.files();
  Summaries summaries(run.set().net, run.set().layout);
  std::vector<Batch> batches(static_cast<std::size_t>(options.num_gpus));

  Dues due(options, run.updates());
  bool last = false;
  while (!last) {
    const bool summarize = files != nullptr && due.summary.at(run.updates());
    for (Batch& batch : batches) batch = run.pipeline().next();
    clock.lap(Phase::input);

    towers.compute_gradients(batches, summarize);
    towers.average_gradients();
    // The servers make the update. This one changes nothing; it looks for values that are not
    // finite, and ends the step.
    towers.apply_gradients(0, 1);
    for (std::size_t t = 0; t < batches.size(); ++t) run.pipeline().release();
    towers.report();
    if (towers.diverged()) output.diverged(run.updates());
    clock.lap(Phase::compute);
    const WorkerRun::Exchange exchanged = run.exchange();
    clock.lap(Phase::averaging, Awaited::output);
    if (exchanged == WorkerRun::Exchange::told_to_end) break;
    last = run.finished() || reason_to_stop(options, clock) != 0;
    if (exchanged == WorkerRun::Exchange::went_back) {
      due = Dues(options, run.updates());
      clock.lap(Phase::averaging, Awaited::input);
      continue;
    }
    const std::int64_t step = run.updates() - 1;
    clock.step_done(run.examples_per_step());

    if (due.show.at(step)) {
      output.display(step, run.epochs_after(step), clock);
      due.show.done(step);
    }
    if (summarize) {
      output.summarize(step, summaries);
      due.summary.done(step);
    }
    clock.lap(Phase::summaries, Awaited::others);
    const bool done = options.eval_every > 0 && run.finished();
    if (files != nullptr && (due.test.at(step) || done)) {
      const bool came = run.fetch();
      clock.lap(Phase::averaging, Awaited::evaluation);
      if (came) {
        const Precision1 result = run.evaluate();
        output.precision(run.updates() - 1, result);  // of what is newest
        run.keep_if_best(result);
      }
      due.test.done(step);
      clock.lap(Phase::evaluation, Awaited::others);
    }
    if (files != nullptr && !last && due.save.at(step)) {
      save(run, clock);
      due.save.done(step);
    }
    clock.lap(Phase::saving);
    last = last || run.finished();  // evaluating and saving bring newer variables
    if (run.updates() <= step) due = Dues(options, run.updates());  // or those of a checkpoint
  }
  clock.lap(Phase::saving, Awaited::others);
  if (files != nullptr) save(run, clock);
  return run.updates() - 1;
}

// What workers do not do is refused, not passed over.
void refuse_what_is_not_there(const cli::TrainOptions& options) {
  if (options.precision == "fp16")
    throw UsageError(
        "--precision=fp16 does not train on parameter servers, whose updates know no loss scale; "
        "give bf16 or fp32");
  for (const auto& [given, flag] : {std::pair{!options.trace_file.empty(), "--trace_file"},
                                    std::pair{options.progress, "--progress"}})
    if (given)
      throw UsageError(std::string(flag) +
                       " is not there for training on parameter servers; leave it out");
}

// Workers of one machine, as far as their addresses tell, and with as many threads each as here,
// pin theirs to processors one behind the other.
int first_processor(const cli::TrainOptions& options, const ClusterTask& task) {
  const std::vector<std::string>& workers = task.cluster.worker_hosts;
  const auto me = workers.begin() + task.task.index;
  const auto before = std::count_if(workers.begin(), me, [me](const std::string& other) {
    return cluster::host_of(other) == cluster::host_of(*me);
  });
  const int threads =
      options.compute_threads != 0 ? options.compute_threads : cpu::available_threads();
  return static_cast<int>(before) * std::max(threads, options.cpu_devices);
}

}  // namespace

int run_worker(const cli::TrainOptions& given, const cli::Parsed& parsed, const ClusterTask& task) {
  refuse_what_is_not_there(given);
  cli::TrainOptions options = given;
  options.first_processor = first_processor(given, task);
  SignalGuard signals;
  WorkerRun run(options, parsed, task);
  if (!run.join()) return exit_code_of(SignalGuard::received());
  if (run.finished()) {
    say_nothing_to_do(run.updates(), options.max_steps);
    return 0;
  }
  run.say_start();
  StepClock clock;
  const Watchdog watchdog(clock, options.stall_seconds, cli::log_warning, cli::log_info,
                          "the parameter servers");
  const StepOutput output{run.options(), run.schedule(), run.set(), run.files()};
  const std::int64_t last_step = worker_loop(run, output, clock);
  if (const std::int64_t dropped = run.dropped(); dropped > 0)
    cli::log_info(std::to_string(dropped) + " gradients came too late and were dropped");
  output.end(last_step, run.epochs_after(last_step), clock);
  return exit_code_of(SignalGuard::received());
}

}  // namespace towers::app
