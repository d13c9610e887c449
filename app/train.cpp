// `towers train`: the multi-tower training loop.

#include <chrono>
#include <cmath>
#include <vector>

#include "app/commands.h"
#include "app/signals.h"
#include "app/step_clock.h"
#include "app/summaries.h"
#include "app/training_run.h"
#include "app/watchdog.h"
#include "cli/console.h"
#include "core/error.h"

namespace towers::app {
namespace {

// A full disk costs summaries, not the run.
template <class Write>
void try_events(TrainingRun& run, const Write& write) {
  try {
    write();
  } catch (const Error& error) {
    run.say_events_failure(error.what());
  }
}

[[noreturn]] void stop_diverged(TrainingRun& run) {
  const NonFinite bad = run.towers().report().non_finite.value_or(NonFinite{});
  std::string message =
      "Model diverged with loss = NaN: step " + std::to_string(run.first_step() + bad.good_steps);
  if (bad.tower >= 0) message += ", tower " + std::to_string(bad.tower);
  message += ", " + (bad.what.empty() ? std::string("the loss") : bad.what) + " is not finite; ";
  try_events(run, [&] { run.events().flush(); });
  const std::string save_error = run.finish_saving();
  if (!save_error.empty()) cli::log_error(save_error);
  const std::string last = run.last_checkpoint();
  throw Error(
      message +
      (last.empty() ? "no checkpoint was saved before it" : "the last good checkpoint is " + last) +
      "; start anew, or with --init_from an earlier one, at a lower --learning_rate");
}

void display(TrainingRun& run, std::int64_t step, StepClock& clock) {
  const Losses mean = mean_losses(run.towers().report().towers);
  const StepClock::Rate rate = clock.rate_since_last_display();
  const auto now = std::chrono::system_clock::now();
  const double seconds_per_batch = rate.seconds_per_step / run.options().num_gpus;
  cli::print_line(
      cli::step_line(now, step, mean.total, rate.examples_per_second, seconds_per_batch));
  if (run.metrics() == nullptr) return;
  try_events(run, [&] {
    run.metrics()->add({.step = step,
                        .time = std::chrono::duration<double>(now.time_since_epoch()).count(),
                        .loss = double{mean.total},
                        .cross_entropy = double{mean.cross_entropy},
                        .learning_rate = double{learning_rate(run.schedule(), step)},
                        .examples_per_sec = rate.examples_per_second,
                        .sec_per_batch = seconds_per_batch,
                        .epoch = run.epochs_after(step)});
  });
}

void evaluate(TrainingRun& run, std::int64_t step) {
  const Precision1 result = run.evaluate();
  if (result.examples == 0) return;
  cli::print_line(cli::precision_line(std::chrono::system_clock::now(), result.precision()));
  try_events(run, [&] {
    run.events().begin_summary(step);
    run.events().scalar("Precision @ 1", static_cast<float>(result.precision()));
    run.events().end_summary();
  });
}

// For a line that can be pasted into a shell.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool due(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

// Trains from first_step to max_steps, or until a signal, the time limit, or nobody reads
// stdout any more; returns the last step made.
std::int64_t train_loop(TrainingRun& run, StepClock& clock) {
  const cli::TrainOptions& options = run.options();
  Towers& towers = run.towers();
  Summaries summaries(run.net(), run.layout());
  std::vector<Batch> batches(static_cast<std::size_t>(options.num_gpus));

  std::int64_t step = run.first_step();
  for (;; ++step) {
    const bool summarize = due(step, options.summary_every);
    for (Batch& batch : batches) batch = run.pipeline().next();
    clock.lap(Phase::input);

    const float rate = learning_rate(run.schedule(), step);
    towers.compute_gradients(batches, summarize);
    clock.lap(Phase::compute);
    towers.average_gradients();
    towers.apply_gradients(rate, moving_average_decay(run.schedule(), step + 1));
    for (std::size_t t = 0; t < batches.size(); ++t) run.pipeline().release();
    clock.lap(Phase::averaging);

    const bool out_of_time = options.max_seconds > 0 && clock.seconds() >= options.max_seconds;
    const bool last = step + 1 >= options.max_steps || out_of_time ||
                      SignalGuard::received() != 0 || cli::stdout_closed();
    const bool show = due(step, options.display_every);
    const bool test = due(step, options.eval_every) && step > 0;
    const bool save = last || due(step, options.checkpoint_every);
    // A device may be steps behind the host: nothing is shown, tested or saved before it has said
    // that all is well.
    if (show || summarize || test || save) towers.report();
    clock.lap(Phase::compute);
    if (towers.diverged()) stop_diverged(run);
    clock.step_done(run.examples_per_step());

    if (show) display(run, step, clock);
    if (summarize)
      try_events(
          run, [&] { summaries.write(run.events(), step, towers, towers.report().towers, rate); });
    clock.lap(Phase::summaries);
    if (test) evaluate(run, step);
    clock.lap(Phase::evaluation);
    if (save) run.save(step);
    clock.lap(Phase::saving);
    if (last) return step;
  }
}

}  // namespace

int run_train(const cli::TrainOptions& options, const cli::Parsed& parsed) {
  TrainingRun run(options, parsed);
  if (run.finished()) {
    cli::log_info("nothing to do: " + std::to_string(run.first_step()) +
                  " steps are made and --max_steps=" + std::to_string(options.max_steps));
    return 0;
  }
  run.start();
  SignalGuard signals;
  StepClock clock;
  const Watchdog watchdog(clock, options.stall_seconds, cli::log_warning, cli::log_info);
  const std::int64_t last_step = train_loop(run, clock);
  clock.lap(Phase::evaluation);
  const std::string save_error = run.finish_saving();
  try_events(run, [&] { run.events().flush(); });
  clock.lap(Phase::saving);

  if (!options.quiet) cli::print_line(final_summary(clock, run.epochs_after(last_step)));
  if (!save_error.empty()) {
    const std::string last = run.last_checkpoint();
    throw Error(save_error + "; " +
                (last.empty() ? "no checkpoint was saved" : "the last good checkpoint is " + last));
  }
  if (last_step + 1 < options.max_steps)
    cli::log_info(
        "stopped after step " + std::to_string(last_step) + "; resume with: towers train " +
        "--flagfile=" + shell_quoted((run.folder().path() / "flags.txt").string()) + " --resume");
  return exit_code_of(SignalGuard::received());
}

}  // namespace towers::app
