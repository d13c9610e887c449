#pragma once
// `towers train` on parameter servers, small enough for tests.

#include <catch2/catch.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/processes.h"

namespace towers::test {

class TrainCluster : public Cluster {
 public:
  TrainCluster(int servers, int workers, const std::filesystem::path& folder, const Args& flags)
      : Cluster(servers, workers,
                {"train", "--dataset=synthetic", "--device=cpu", "--batch_size=8", "--seed=7",
                 "--compute_threads=1", "--cluster_timeout=60", "--train_dir=" + folder.string()},
                flags),
        servers_(servers),
        workers_(workers) {}

  // All tasks to their ends, each without an error; the workers' results.
  std::vector<ProcessResult> run() const {
    std::vector<std::unique_ptr<Process>> ps, workers;
    for (int i = 0; i < servers_; ++i) ps.push_back(start("ps", i));
    for (int i = 0; i < workers_; ++i) workers.push_back(start("worker", i));
    std::vector<ProcessResult> results;
    for (auto& worker : workers) results.push_back(worker->wait());
    for (const ProcessResult& result : results) {
      INFO(result.err);
      CHECK(result.exit_code == 0);
    }
    for (auto& server : ps) {
      const ProcessResult result = server->wait();
      INFO(result.err);
      CHECK(result.exit_code == 0);
    }
    return results;
  }

 private:
  int servers_, workers_;
};

}  // namespace towers::test
