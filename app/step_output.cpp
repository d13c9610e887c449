#include "app/step_output.h"

#include <chrono>

#include "app/signals.h"
#include "cli/console.h"
#include "core/error.h"

namespace towers::app {
namespace {

std::string last_good(const RunFiles& files) {
  const std::string last = files.last_checkpoint();
  return last.empty() ? "" : "the last good checkpoint is " + last;
}

}  // namespace

int reason_to_stop(const cli::TrainOptions& options, const StepClock& clock) {
  if (const int signal = SignalGuard::received()) return signal;
  const bool out_of_time = options.max_seconds > 0 && clock.seconds() >= options.max_seconds;
  return out_of_time || cli::stdout_closed() ? kStopInOrder : 0;
}

void StepOutput::display(std::int64_t step, double epochs, StepClock& clock) const {
  const Losses mean = mean_losses(set.towers->report().towers);
  const StepClock::Rate rate = clock.rate_since_last_display();
  const auto now = std::chrono::system_clock::now();
  const double seconds_per_batch =
      rate.seconds_per_step / static_cast<double>(set.towers->report().towers.size());
  cli::print_line(
      cli::step_line(now, step, mean.total, rate.examples_per_second, seconds_per_batch));
  if (files == nullptr || files->metrics() == nullptr) return;
  files->try_events([&] {
    files->metrics()->add({.step = step,
                           .time = std::chrono::duration<double>(now.time_since_epoch()).count(),
                           .loss = double{mean.total},
                           .cross_entropy = double{mean.cross_entropy},
                           .learning_rate = double{learning_rate(schedule, step)},
                           .examples_per_sec = rate.examples_per_second,
                           .sec_per_batch = seconds_per_batch,
                           .epoch = epochs});
  });
}

void StepOutput::summarize(std::int64_t step, Summaries& summaries) const {
  files->try_events([&] {
    summaries.write(files->events(), step, *set.towers, set.towers->report().towers,
                    learning_rate(schedule, step));
  });
}

void StepOutput::precision(std::int64_t step, const Precision1& result) const {
  if (result.examples == 0) return;
  cli::print_line(cli::precision_line(std::chrono::system_clock::now(), result.precision()));
  files->try_events([&] {
    files->events().begin_summary(step);
    files->events().scalar("Precision @ 1", static_cast<float>(result.precision()));
    files->events().end_summary();
  });
}

void StepOutput::diverged(std::int64_t step) const {
  const NonFinite bad = set.towers->report().non_finite.value_or(NonFinite{});
  std::string message = "Model diverged with loss = NaN: step " + std::to_string(step);
  if (bad.tower >= 0) message += ", tower " + std::to_string(bad.tower);
  message += ", " + (bad.what.empty() ? std::string("the loss") : bad.what) + " is not finite; ";
  if (files != nullptr) {
    files->try_events([&] { files->events().flush(); });
    const std::string save_error = files->finish_saving();
    if (!save_error.empty()) cli::log_error(save_error);
    const std::string last = last_good(*files);
    message += (last.empty() ? "no checkpoint was saved before it" : last) + "; ";
  }
  throw Error(message +
              "start anew, or with --init_from an earlier one, at a lower --learning_rate");
}

void StepOutput::end(std::int64_t last_step, double epochs, StepClock& clock) const {
  std::string save_error;
  if (files != nullptr) {
    save_error = files->finish_saving();
    files->try_events([&] { files->events().flush(); });
  }
  clock.lap(Phase::saving);
  if (!options.quiet) cli::print_line(final_summary(clock, epochs));
  if (files == nullptr) return;
  if (!save_error.empty()) {
    const std::string last = last_good(*files);
    throw Error(save_error + "; " + (last.empty() ? "no checkpoint was saved" : last));
  }
  if (last_step + 1 < options.max_steps)
    cli::log_info("stopped after step " + std::to_string(last_step) +
                  "; resume with: " + resume_command(files->folder().path()));
}

}  // namespace towers::app
