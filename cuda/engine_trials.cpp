#include "cuda/engine_trials.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace towers::cuda {
namespace {

// A graph repeats a run until it takes this long: beside that, what a launch adds is little.
constexpr float kGraphMilliseconds = 0.3f;
constexpr int kMostRuns = 10;  // in a graph
constexpr int kTurns = 5;      // of which the shortest counts

struct Candidate {
  std::int64_t engine;
  int runs;
  Graph graph;
};

}  // namespace

bool EngineTrials::starts(std::int64_t engine) {
  std::string why = enqueue_(engine);
  if (why.empty()) return true;
  refusal_ = std::move(why);
  return false;
}

std::optional<Graph> EngineTrials::capture(std::int64_t engine, int runs) {
  try {
    Graph graph = Graph::capture(stream_, [&] {
      for (int r = 0; r < runs; ++r)
        if (const std::string why = enqueue_(engine); !why.empty()) throw Error(why);
    });
    graph.launch(stream_);  // the first launch brings it to the GPU
    stream_.synchronize();
    return graph;
  } catch (const Error& error) {
    refusal_ = std::string("in a captured graph: ") + error.what();
    return std::nullopt;
  }
}

bool EngineTrials::runs(std::int64_t engine) {
  // By itself first: libraries load code at the first run, which capturing forbids.
  return starts(engine) && capture(engine, 1).has_value();
}

std::int64_t EngineTrials::fastest(const std::vector<std::int64_t>& engines) {
  std::vector<Candidate> candidates;
  for (const std::int64_t engine : engines) {
    if (!starts(engine)) continue;  // loads code
    watch_.start(stream_);
    if (!starts(engine)) continue;
    const float alone = std::max(watch_.stop(stream_), kGraphMilliseconds / kMostRuns);
    const int runs = std::max(1, static_cast<int>(kGraphMilliseconds / alone));
    if (std::optional<Graph> graph = capture(engine, runs))
      candidates.push_back({engine, runs, std::move(*graph)});
  }
  std::int64_t best = -1;
  float best_time = std::numeric_limits<float>::max();
  // In turns: clocks that rise meanwhile favour none.
  for (int turn = 0; turn < kTurns; ++turn)
    for (Candidate& candidate : candidates) {
      watch_.start(stream_);
      candidate.graph.launch(stream_);
      const float time = watch_.stop(stream_) / static_cast<float>(candidate.runs);
      if (time < best_time) best = candidate.engine, best_time = time;
    }
  return best;
}

}  // namespace towers::cuda
