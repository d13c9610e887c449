#include "app/training_run.h"

#include "app/setup.h"
#include "app/start_table.h"

namespace towers::app {

TrainingRun::TrainingRun(const cli::TrainOptions& options, const cli::Parsed& parsed)
    : options_(options),
      schedule_(schedule_of(options, options.num_gpus)),
      set_(options),
      files_(
          std::make_unique<RunFiles>(options, parsed.flagfile, set_.layout, examples_per_step())) {
  if (finished()) return;
  files_->check();
  dataset_ = load_dataset(options, data::Split::train);
  if (options.eval_every > 0)
    evaluation_ = std::make_unique<PeriodicEvaluation>(options, *set_.backend, set_.net);
  towers().write_variables(files_->variables(), files_->averages());
  pipeline_ = std::make_unique<data::Pipeline>(
      dataset_,
      data::PipelineOptions{.batch_size = options.batch_size,
                            .capacity = 2 * options.num_gpus,
                            .threads = input_threads(options),
                            .seed = files_->seed(),
                            .first_position = files_->first_position()},
      [this](std::size_t bytes) { return set_.backend->allocate(bytes); });
}

void TrainingRun::start() {
  files_->begin(set_.graph(options_.batch_size));
  say_start({.options = options_,
             .backend = *set_.backend,
             .placement = set_.placement,
             .schedule = schedule_,
             .data = dataset_.description,
             .seed = files_->seed(),
             .input_threads = input_threads(options_),
             .first_step = first_step(),
             .train_dir = files_->folder().path().string()},
            set_.net, set_.device_names());
}

std::uint64_t TrainingRun::position_after(std::int64_t step) const {
  return files_->first_position() +
         static_cast<std::uint64_t>((step + 1 - first_step()) * examples_per_step());
}

double TrainingRun::epochs_after(std::int64_t step) const {
  return static_cast<double>(position_after(step)) / data::kTrainExamples;
}

void TrainingRun::save(std::int64_t step) {
  if (files_->is_saved(step)) return;
  towers().read_variables(files_->variables());
  towers().read_moving_averages(files_->averages());
  files_->save(step, position_after(step));
}

Precision1 TrainingRun::evaluate() {
  towers().read_moving_averages(files_->averages());
  return evaluation_->run(files_->averages());
}

}  // namespace towers::app
