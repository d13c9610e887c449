// What only training knows: the run, its optimization, its output.

#include "cli/commands.h"
#include "cli/flag_rows.h"

namespace towers::cli {

std::vector<Flag> run_flags() {
  using O = TrainOptions;
  const auto group = Group::run;
  return {
      only("max_steps", group, train_bit, whole(&O::max_steps, std::int64_t{0}),
           "steps in all, those before a resume too"),
      only("max_seconds", group, train_bit, real(&O::max_seconds),
           "save and end after so many seconds; 0: no limit"),
      only("stall_seconds", group, train_bit, real(&O::stall_seconds),
           "after so many seconds without progress say what the run waits for; 0: never"),
      only("train_dir", group, train_bit, folder(&O::train_dir),
           "where checkpoints and events go; a new run deletes an earlier one's files there"),
      only("overwrite", group, train_bit, boolean(&O::overwrite),
           "start beside files of others, which stay"),
      only("resume", group, train_bit, boolean(&O::resume),
           "go on from the latest checkpoint of train_dir"),
      only("init_from", group, train_bit,
           text(&O::init_from, "CHECKPOINT", "the name of a checkpoint", anything),
           "start at step 0 with the variables of another run: PREFIX, or a folder's latest"),
      only("seed", group, train_bit, with_default_text(whole(&O::seed, std::uint64_t{0}), "random"),
           "equal seeds give equal runs"),
  };
}

std::vector<Flag> optimization_flags() {
  using O = TrainOptions;
  const auto group = Group::optimization;
  const RealRange fraction{0, 1, true};
  const RealRange positive{.lowest = 0, .lowest_allowed = false};
  return {
      only("learning_rate", group, train_bit, real(&O::learning_rate),
           "learning rate of the first steps"),
      only("learning_rate_decay", group, train_bit, real(&O::learning_rate_decay, fraction),
           "factor at each decay"),
      only("epochs_per_decay", group, train_bit, real(&O::epochs_per_decay, positive),
           "passes over the data between two decays"),
      only("decay_by", group, train_bit, choice(&O::decay_by, {"steps", "examples"}),
           "count epochs by one tower's steps, as TensorFlow does, or by the examples of all"),
      only("moving_average_decay", group, train_bit, real(&O::moving_average_decay, fraction),
           "of the averages of the variables, which eval uses"),
      only("weight_decay", group, train_bit, real(&O::weight_decay),
           "of the weights of local3 and local4"),
  };
}

std::vector<Flag> output_flags() {
  using O = TrainOptions;
  const auto group = Group::output;
  const std::int64_t one = 1;
  return {
      only("display_every", group, train_bit, whole(&O::display_every, one),
           "steps from one line to the next"),
      only("summary_every", group, train_bit, whole(&O::summary_every, one),
           "steps between summaries for TensorBoard"),
      only("checkpoint_every", group, train_bit, whole(&O::checkpoint_every, one),
           "steps between checkpoints; the last is saved too"),
      only("max_to_keep", group, train_bit, whole(&O::max_to_keep, 0),
           "newest checkpoints to keep; 0: all"),
      only("eval_every", group, train_bit, whole(&O::eval_every, std::int64_t{0}),
           "steps between evaluations, the last step too; the best checkpoint is kept in "
           "train_dir/best; 0: none"),
      only("metrics_log", group, train_bit, file(&O::metrics_log),
           "a .csv or .jsonl file that gets a row with each step line; resuming goes on in it; "
           "{train_dir}/ before its name stands for that folder"),
      only("trace_file", group, train_bit, file(&O::trace_file),
           "a .json timeline of threads, towers and phases, for ui.perfetto.dev"),
      only("trace_steps", group, train_bit, whole(&O::trace_steps, one, std::int64_t{1000000}),
           "how many of this start's first steps it shows"),
      only("progress", group, train_bit, boolean(&O::progress),
           "a line on stderr with the steps made and the time left"),
      only("json", group, devices_bit | inspect_bit | predict_bit | bench_bit,
           boolean(&SharedOptions::json), "print JSON"),
      only("diff", group, inspect_bit, boolean(&InspectOptions::diff), "compare two checkpoints"),
      only("csv", group, predict_bit, file(&PredictOptions::csv),
           "a line for each image of --eval_data (index, label, class, probability); -: to stdout"),
      only("logits", group, predict_bit, boolean(&PredictOptions::logits),
           "with --csv: each class's logit, too"),
  };
}

}  // namespace towers::cli
