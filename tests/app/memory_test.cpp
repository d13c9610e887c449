// What a long run keeps in memory. Minutes, so only when asked for: ctest --preset release -L long
// -C Long

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "tests/app/quick_run.h"

using namespace towers::test;

namespace {

// Memory of a process that lies in RAM, in kB.
long resident(pid_t pid) {
  std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  return 0;
}

}  // namespace

TEST_CASE("memory stays within 1 % from step 1,000 to 20,000", "[.]") {
  TemporaryFolder folder;
  // With all that a run does on its way: checkpoints, summaries with histograms, a log of metrics.
  Process run(
      quick_args(folder.path() / "run", 20'001,
                 {"--learning_rate=0.001", "--display_every=1000", "--checkpoint_every=1000",
                  "--summary_every=100", "--metrics_log=" + (folder.path() / "a.csv").string()}),
      {.limit_seconds = 3500});
  REQUIRE(run.wait_for_output("step 1000,"));
  const long first = resident(run.pid());
  REQUIRE(first > 0);
  long largest = first;
  for (int step = 2000; step <= 20'000; step += 1000) {
    REQUIRE(run.wait_for_output("step " + std::to_string(step) + ","));
    if (step < 20'000) largest = std::max(largest, resident(run.pid()));
  }
  std::cout << "resident: " << first << " kB at step 1,000, at most " << largest << " kB after\n";
  CHECK(static_cast<double>(largest) <= 1.01 * static_cast<double>(first));
  CHECK(run.wait().exit_code == 0);
}
