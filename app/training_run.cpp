#include "app/training_run.h"

#include <span>
#include <vector>

#include "app/setup.h"
#include "app/start_table.h"
#include "app/training_input.h"

namespace towers::app {

TrainingRun::TrainingRun(const cli::TrainOptions& options, const cli::Parsed& parsed, Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      schedule_(schedule_of(options, options.num_gpus * ranks.count())),
      set_(options, &ranks) {
  restore(parsed.flagfile);
  if (finished()) return;
  if (files_) files_->check();
  dataset_ = load_dataset(options, data::Split::train);
  if (files_ && options.eval_every > 0)
    evaluation_ = std::make_unique<PeriodicEvaluation>(options, *set_.backend, set_.net);
  const std::uint64_t before =  // examples that earlier ranks take of a step
      static_cast<std::uint64_t>(options.batch_size) *
      static_cast<std::uint64_t>(options.num_gpus) * static_cast<std::uint64_t>(ranks.rank());
  input_ = choose_input(options.input, *set_.backend, towers(), dataset_, start_.seed);
  pipeline_ = open_pipeline(options, *set_.backend, dataset_,
                            {.seed = start_.seed,
                             .first_position = start_.position + before,
                             .readers = ranks.count(),
                             .form = input_});
}

// The leader restores, or draws initial values, for all.
void TrainingRun::restore(const std::string& flagfile) {
  if (ranks_.leads()) {
    files_ = std::make_unique<RunFiles>(options_, flagfile, set_.layout, examples_per_step());
    start_ = {files_->seed(), files_->first_step(), files_->first_position()};
  }
  ranks_.take_leaders(std::as_writable_bytes(std::span(&start_, 1)));
  std::vector<float> variables(set_.layout.size()), averages(set_.layout.size());
  if (files_) {
    variables = files_->variables();
    averages = files_->averages();
  }
  for (std::vector<float>* values : {&variables, &averages})
    ranks_.take_leaders(std::as_writable_bytes(std::span(*values)));
  towers().write_variables(variables, averages);
}

void TrainingRun::start() {
  ranks_.agree();  // before anything of a former run is deleted
  if (!files_) return;
  files_->begin(set_.graph(options_.batch_size));
  say_start({.options = options_,
             .backend = *set_.backend,
             .placement = set_.placement,
             .schedule = schedule_,
             .data = dataset_.description,
             .seed = start_.seed,
             .input = input_text(input_, dataset_, input_threads(options_)),
             .first_step = first_step(),
             .train_dir = files_->folder().path().string(),
             .ranks = ranks_.count()},
            set_.net, set_.device_names());
}

std::uint64_t TrainingRun::position_after(std::int64_t step) const {
  return start_.position +
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

void TrainingRun::keep_if_best(std::int64_t step, const Precision1& result) {
  if (result.examples == 0) return;
  towers().read_variables(files_->variables());  // evaluate() has read the averages
  files_->keep_if_best(step, result.precision());
}

}  // namespace towers::app
