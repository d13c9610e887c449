// Parts with threads and files of their own, started and ended 100 times in one process.

#include <catch2/catch.hpp>

#include <filesystem>
#include <iterator>

#include "core/models/cifar10.h"
#include "core/variables.h"
#include "cpu/backend.h"
#include "data/checkpoint_saver.h"
#include "data/event_file.h"
#include "data/pipeline.h"
#include "data/run_folder.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::test {
namespace {

std::ptrdiff_t entries(const char* folder) {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

// A run's life: the folder, towers on two devices, the pipeline, saver and event file, one step.
void live(const std::filesystem::path& dir, const data::Dataset& dataset) {
  data::RunFolder folder(dir, data::RunFolder::Mode::fresh);
  folder.clear();
  // By which the next life knows its folder.
  write_file(dir / "flags.txt", std::string(data::kFlagsFileMark) + "\n");
  const auto backend = cpu::make_backend({.threads = 2, .devices = 2, .simd = "auto"});
  const Net net = cifar10_net();
  const VariableLayout layout(net);
  std::vector<float> values(layout.size());
  initialize_variables(layout, 7, values);
  const auto towers = backend->compile(net, {.batch_size = 2, .device_of_tower = {0, 1}});
  towers->write_variables(values, values);
  data::Pipeline pipeline(dataset, {.batch_size = 2, .capacity = 4, .threads = 2},
                          [&](std::size_t bytes) { return backend->allocate(bytes); });
  data::EventFileWriter events(dir);
  data::CheckpointSaver saver(dir, 2);
  towers->compute_gradients(std::vector<Batch>{pipeline.next(), pipeline.next()}, false);
  towers->average_gradients();
  towers->apply_gradients(0.1f, 0.9f);
  CHECK_FALSE(towers->diverged());
  events.add_session_start(1);
  const std::span<const float> some = std::span(values).first(100);
  saver.save(1, std::vector{float_tensor("some", {100}, some)});
  CHECK(saver.wait() == "");
  std::vector<float> read(100);
  data::CheckpointReader(data::checkpoint_prefix(dir, 1)).read("some", read);
}

}  // namespace

TEST_CASE("100 starts and ends leave no thread and no open file") {
  const TemporaryFolder folder;
  data::Dataset dataset;
  dataset.records.resize(std::size_t{20} * data::kRecordBytes);
  live(folder.path() / "run", dataset);  // what libraries open once for good
  const std::ptrdiff_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
#ifdef TOWERS_SANITIZED
  constexpr int kLives = 20;  // each takes five times as long
#else
  constexpr int kLives = 100;
#endif
  for (int i = 0; i < kLives; ++i) live(folder.path() / "run", dataset);
  CHECK(entries("/proc/self/fd") == files);
  CHECK(entries("/proc/self/task") == threads);
}

}  // namespace towers::test
