// Every call that changes a file fails in turn, or is the process's last.
//
// TOWERS_ALL_CALLS=1 in the environment takes all calls instead of each 41st.

#include <catch2/catch.hpp>

#include <signal.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "tests/app/former_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

// One in so many calls; a run of its own for each.
std::size_t stride() {
  return std::getenv("TOWERS_ALL_CALLS") != nullptr ? 1 : 41;
}

}  // namespace

TEST_CASE("each call that changes a file may fail: a line, and the last checkpoint stays") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  std::size_t faults = 0;
  for (std::size_t n = 0;; n += stride(), ++faults) {
    const int error = faults % 2 == 0 ? ENOSPC : EIO;
    const fs::path dir = former.copy();
    const ProcessResult run = former.run(5, kResume, std::to_string(error), n);
    if (former.calls().size() <= n) {
      REQUIRE(run.exit_code == 0);
      break;
    }
    const std::string call = former.calls()[n];
    INFO(call << ": " << std::strerror(error) << "\n" << run.err);
    REQUIRE(faults_in(dir) == "");
    REQUIRE(global_step_of(dir) >= 2);
    REQUIRE((run.exit_code == 0 || run.exit_code == 1));
    if (run.exit_code == 0) CHECK(global_step_of(dir) == 5);
    if (run.exit_code == 1) CHECK(contains(run.err, "towers: error: "));
    // Of no account: what the lock says and its end, and the removal of temporary files that are
    // there or not.
    const bool told = contains(run.err, std::strerror(error)) && contains(run.err, dir.string());
    CHECK((told || contains(call, "/lock") || contains(call, "unlink")));
    CHECK(count(run.err, std::strerror(error)) <= 2);  // once, and at the end
    check_resumes(dir);
  }
  REQUIRE(faults * stride() > 100);
  std::cout << faults << " faults" << std::endl;
}

TEST_CASE("no checkpoint is named whose position flags.txt could not take") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  former.copy();
  REQUIRE(former.run(5, kResume, std::to_string(ENOSPC), 100000).exit_code == 0);
  const std::vector<std::string> calls = former.calls();
  int met = 0;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    if (!contains(calls[n], "/flags.txt") || !contains(calls[n], "open")) continue;
    const fs::path dir = former.copy();
    const ProcessResult run = former.run(5, kResume, std::to_string(ENOSPC), n);
    if (n >= former.calls().size()) continue;  // threads make them in another order each time
    if (contains(former.calls()[n], "/flags.txt")) ++met;
    INFO(former.calls()[n] << "\n" << run.err);
    CHECK(faults_in(dir) == "");
    check_resumes(dir);
  }
  CHECK(met > 0);
}

TEST_CASE("each call that changes a file may be a run's last") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  const bool resume = GENERATE(true, false);
  const std::vector<std::string> flags = resume ? kResume : anew();
  std::size_t kills = 0;
  for (std::size_t n = 0;; n += stride(), ++kills) {
    const fs::path dir = former.copy();
    const ProcessResult run = former.run(5, flags, "kill", n);
    if (former.calls().size() <= n) {
      REQUIRE(run.exit_code == 0);
      break;
    }
    INFO("killed at " << former.calls()[n] << "\n" << run.err);
    REQUIRE(run.exit_code == 128 + SIGKILL);
    REQUIRE(faults_in(dir) == "");
    if (resume) REQUIRE(global_step_of(dir) >= 2);
    check_resumes(dir);
  }
  REQUIRE(kills * stride() > 100);
  std::cout << kills << " kills" << std::endl;
}
