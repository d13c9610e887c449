// `towers train`: the multi-tower training loop.

#include <vector>

#include "app/commands.h"
#include "app/rank_settings.h"
#include "app/ranks.h"
#include "app/signals.h"
#include "app/start_table.h"
#include "app/step_clock.h"
#include "app/step_output.h"
#include "app/trace_window.h"
#include "app/training_run.h"
#include "app/watchdog.h"
#include "app/worker_run.h"
#include "cli/console.h"
#include "cli/work_progress.h"

namespace towers::app {
namespace {

bool due(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

// Trains from first_step to max_steps, or until a signal, the time limit, or nobody reads
// stdout any more; returns the last step made.
std::int64_t train_loop(TrainingRun& run, const StepOutput& output, StepClock& clock,
                        TraceWindow& trace) {
  const cli::TrainOptions& options = run.options();
  Towers& towers = run.towers();
  Ranks& ranks = run.ranks();
  Summaries summaries(run.set().net, run.set().layout);
  cli::WorkProgress progress("step", run.first_step(), options.max_steps,
                             options.progress && ranks.leads());
  std::vector<Batch> batches(static_cast<std::size_t>(options.num_gpus));

  std::int64_t step = run.first_step();
  for (;; ++step) {
    const bool summarize = due(step, options.summary_every);
    for (Batch& batch : batches) batch = run.pipeline().next();
    clock.lap(Phase::input);

    ranks.begin_step(reason_to_stop(options, clock));
    const float rate = learning_rate(run.schedule(), step);
    towers.compute_gradients(batches, summarize && ranks.leads());
    clock.lap(Phase::compute);
    towers.average_gradients();
    clock.lap(Phase::averaging);
    towers.apply_gradients(rate, moving_average_decay(run.schedule(), step + 1));
    for (std::size_t t = 0; t < batches.size(); ++t) run.pipeline().release();
    clock.lap(Phase::update);
    const bool stop = ranks.end_step(reason_to_stop(options, clock)) != 0;
    clock.lap(Phase::averaging);

    const bool last = step + 1 >= options.max_steps || stop;
    const bool show = due(step, options.display_every);
    const bool test = (step > 0 && due(step, options.eval_every)) ||
                      (options.eval_every > 0 && step + 1 >= options.max_steps);
    const bool save = last || due(step, options.checkpoint_every);
    // A device may be steps behind the host: nothing is shown, tested or saved before it has said
    // that all is well.
    if (show || summarize || test || save) towers.report();
    clock.lap(Phase::compute, Awaited::output);
    if (towers.diverged())
      output.diverged(run.first_step() +
                      towers.report().non_finite.value_or(NonFinite{}).good_steps);
    clock.step_done(run.examples_per_step());

    if (show && ranks.leads()) output.display(step, run.epochs_after(step), clock);
    if (summarize && ranks.leads()) output.summarize(step, summaries);
    clock.lap(Phase::summaries);
    if (test && ranks.leads()) {
      const Precision1 result = run.evaluate();
      output.precision(step, result);
      run.keep_if_best(step, result);
    }
    clock.lap(Phase::evaluation);
    if (save && ranks.leads()) run.save(step);
    clock.lap(Phase::saving, Awaited::output);
    trace.step_done(step, clock.last_lap());
    progress.update(step + 1);
    clock.lap(Phase::saving);
    if (last) return step;
  }
}

int train(const cli::TrainOptions& options, const cli::Parsed& parsed, Ranks& ranks) {
  TrainingRun run(options, parsed, ranks);
  if (run.finished()) {
    say_nothing_to_do(run.first_step(), options.max_steps);
    return 0;
  }
  run.start();
  SignalGuard signals;
  // Before the clock that it shows.
  TraceWindow trace(ranks.leads() ? options.trace_file : "", options.trace_steps);
  StepClock clock(run.set().backend->devices().front().kind == DeviceKind::gpu);
  const Watchdog watchdog(clock, options.stall_seconds, cli::log_warning, cli::log_info,
                          ranks.alone() ? "the towers" : "a rank, for its gradients");
  const StepOutput output{run.options(), run.schedule(), run.set(), run.files()};
  const std::int64_t last_step = train_loop(run, output, clock, trace);
  clock.lap(Phase::evaluation);
  if (ranks.leads()) output.end(last_step, run.epochs_after(last_step), clock);
  return exit_code_of(ranks.finish(SignalGuard::received()));
}

}  // namespace

int run_train(const cli::TrainOptions& given, const cli::Parsed& parsed) {
  if (is_distributed(given)) {
    const ClusterTask task = cluster_task(given);
    return task.task.job == cluster::Job::ps ? run_parameter_server(given, task)
                                             : run_worker(given, parsed, task);
  }
  Ranks ranks;
  return ranks.run([&] {
    cli::TrainOptions options = given;
    refuse_cluster_flags_alone(options);
    require_equal_flags(ranks, parsed);
    share_threads(ranks, options);
    return train(options, parsed, ranks);
  });
}

}  // namespace towers::app
