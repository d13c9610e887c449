// What a run needs of memory, and keeps of it when it is long. The latter takes minutes, so only
// when asked for: ctest --preset release -L long -C Long

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "tests/app/quick_run.h"

using namespace towers::test;

namespace {

// Memory of a process that lies in RAM, in kB: now (VmRSS), or the most so far (VmHWM).
long resident(pid_t pid, const std::string& name = "VmRSS") {
  std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + ":")) return std::atol(line.c_str() + name.size() + 1);
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

TEST_CASE("a run with batches of 128 stays within 450 MB") {
#ifdef TOWERS_SANITIZED
  return skip("a sanitizer has memory of its own");
#endif
  TemporaryFolder folder;
  // It is ended when it has made two steps.
  Process run(quick_args(folder.path() / "run", 100'000,
                         {"--batch_size=128", "--compute_threads=2", "--display_every=1"}));
  REQUIRE(run.wait_for_output("step 1,"));
  const long most = resident(run.pid(), "VmHWM");
  std::cout << "resident: at most " << most << " kB\n";
  CHECK(most > 100'000);  // the data set alone has 150
  CHECK(most < 450'000);
}
