// The choice among a library's engines, which here are fills of memory.

#include "cuda/engine_trials.h"
#include "tests/cuda_host/support.h"

namespace towers::cuda {
namespace {

using cuda_host::Devices;

struct Engine {
  int fills = 1;         // a millisecond each
  bool starts = true;    // else it refuses
  bool captures = true;  // else it waits for the GPU, which capturing forbids
  int alone = 0;         // runs that were enqueued by themselves
};

class Library {
 public:
  explicit Library(std::vector<Engine> list) : engines(std::move(list)) {}

  EngineTrials trials() {
    return {stream, [this](std::int64_t engine) {
              return enqueue(engines.at(static_cast<std::size_t>(engine)));
            }};
  }

  std::vector<Engine> engines;
  Stream stream{0};

 private:
  std::string enqueue(Engine& engine) {
    if (!engine.starts) return "on purpose";
    cudaStreamCaptureStatus status;
    TOWERS_CUDA(cudaStreamIsCapturing(stream.get(), &status));
    if (status == cudaStreamCaptureStatusNone) ++engine.alone;
    for (int f = 0; f < engine.fills; ++f)
      TOWERS_CUDA(cudaMemsetAsync(values_.data(), 0, values_.size(), stream.get()));
    if (!engine.captures) stream.synchronize();
    return "";
  }

  DeviceMemory memory_{0};
  std::span<char> values_ = memory_.allocate<char>(16);
};

TEST_CASE("the fastest engine is one that a graph may hold, timed in graphs") {
  const Devices devices;
  Library library(
      {{.fills = 3}, {.captures = false}, {.starts = false}, {.fills = 2}, {.fills = 4}});
  CHECK(library.trials().fastest({0, 1, 2, 3, 4}) == 3);
  // By itself it runs to load code and to tell how often a graph should repeat it.
  for (const Engine& engine : library.engines) CHECK(engine.alone <= 2);
}

TEST_CASE("an engine that starts alone and not in a graph is none, and says why") {
  const Devices devices;
  Library library({{.captures = false}, {.starts = false}, {}});
  EngineTrials trials = library.trials();
  CHECK_FALSE(trials.runs(0));
  CHECK_THAT(trials.refusal(),
             Catch::StartsWith("in a captured graph: cudaStreamSynchronize failed"));
  CHECK_FALSE(trials.runs(1));
  CHECK(trials.refusal() == "on purpose");
  CHECK(trials.fastest({0, 1}) == -1);
  CHECK(trials.runs(2));
  CHECK(library.stream.done());
}

}  // namespace
}  // namespace towers::cuda
