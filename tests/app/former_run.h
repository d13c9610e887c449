#pragma once
// A run to go on from, again and again, with calls that fail.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/quick_run.h"
#include "tests/app/run_check.h"

namespace towers::test {

// Small batches, so that most of the time goes into writing.
inline const std::vector<std::string> kResume = {"--batch_size=2",       "--learning_rate=0.001",
                                                 "--checkpoint_every=1", "--max_to_keep=2",
                                                 "--summary_every=2",    "--resume"};

inline std::vector<std::string> anew() {
  std::vector<std::string> flags = kResume;
  flags.back() = "--noresume";
  return flags;
}

#ifdef TOWERS_SANITIZED
inline constexpr bool kShim = false;  // a sanitizer's own calls come before a preloaded library's
#else
inline constexpr bool kShim = true;
#endif

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

// A run of two steps to go on from, copied for each fault.
class Former {
 public:
  Former() { REQUIRE(quick_run(source_, 2, anew()).exit_code == 0); }

  std::filesystem::path copy() {
    std::filesystem::remove_all(dir());
    std::filesystem::copy(source_, dir(), std::filesystem::copy_options::recursive);
    return dir();
  }
  std::filesystem::path dir() const { return std::filesystem::canonical(folder_.path()) / "run"; }

  // A run in dir() whose calls there fail, from number `at` on: see fault_shim.cpp.
  ProcessResult run(int max_steps, const std::vector<std::string>& flags, const std::string& fault,
                    std::size_t at, int times = 1) {
    std::filesystem::remove(log_);
    return quick_run(
        dir(), max_steps, flags,
        {.environment = {
             std::string("LD_PRELOAD=") + TOWERS_FAULT_SHIM, "TOWERS_FAULT_DIR=" + dir().string(),
             "TOWERS_FAULT=" + fault, "TOWERS_FAULT_AT=" + std::to_string(at),
             "TOWERS_FAULT_TIMES=" + std::to_string(times), "TOWERS_FAULT_LOG=" + log_.string()}});
  }

  // The calls of the last run, in order: "NUMBER NAME PATH". Threads make them in another order
  // each time.
  std::vector<std::string> calls() const { return lines_of(read_file(log_)); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path source_ = folder_.path() / "former";
  std::filesystem::path log_ = folder_.path() / "log";
};

// Goes on in `dir` without faults, which leaves nothing of what was.
inline void check_resumes(const std::filesystem::path& dir) {
  const std::int64_t before = global_step_of(dir);
  const ProcessResult run =
      quick_run(dir, static_cast<int>(std::max<std::int64_t>(before, 5)) + 3, kResume);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  REQUIRE(faults_after_end(dir, 2) == "");
}

}  // namespace towers::test
