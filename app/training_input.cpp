#include "app/training_input.h"

#include "app/setup.h"
#include "cli/console.h"
#include "core/error.h"

namespace towers::app {

InputForm choose_input(const std::string& flag, const Backend& backend, Towers& towers,
                       const data::Dataset& dataset, std::uint64_t seed) {
  if (!backend.makes_input()) {
    if (flag == "device")
      throw UsageError("--input=device is for GPUs, and the towers run on " +
                       backend.description() + "; give --input=host");
    return InputForm::images;
  }
  const TrainingRecords set{dataset.records, seed};
  if (flag != "host" && towers.make_input(InputForm::positions, set)) return InputForm::positions;
  const std::string lacking = "the GPUs' memory has no room for the data set (" +
                              cli::human_bytes(dataset.records.size()) + " and some to spare)";
  if (flag == "device")
    throw Error("--input=device: " + lacking + "; lower --batch_size, or give --input=host");
  if (flag == "auto") cli::log_info(lacking + ": the host feeds them");
  towers.make_input(InputForm::records, set);
  return InputForm::records;
}

std::unique_ptr<data::Pipeline> open_pipeline(const cli::TrainOptions& options, Backend& backend,
                                              const data::Dataset& dataset,
                                              data::PipelineOptions stream) {
  stream.batch_size = options.batch_size;
  stream.capacity = 2 * options.num_gpus;
  stream.threads = input_threads(options);
  stream.turn = options.num_gpus;
  return std::make_unique<data::Pipeline>(
      dataset, stream, [&backend](std::size_t bytes) { return backend.allocate(bytes); });
}

std::string input_text(InputForm form, const data::Dataset& dataset, int threads) {
  if (form == InputForm::positions)
    return "device, " + cli::human_bytes(dataset.records.size()) + " on each GPU";
  return "host, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
         (form == InputForm::records ? ", distorted on the GPUs" : "");
}

}  // namespace towers::app
