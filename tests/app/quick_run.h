#pragma once
// A training run small enough for tests.

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/app/process.h"
#include "tests/support.h"

namespace towers::test {

// `towers train` on the synthetic set with batches of 8, then `more`.
inline std::vector<std::string> quick_args(const std::filesystem::path& train_dir, int max_steps,
                                           const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"--dataset=synthetic",
                                   "--device=cpu",
                                   "--batch_size=8",
                                   "--seed=7",
                                   "--max_steps=" + std::to_string(max_steps),
                                   "--train_dir=" + train_dir.string()};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Flags, and more of them.
inline std::vector<std::string> with(std::vector<std::string> flags,
                                     const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

inline ProcessResult quick_run(const std::filesystem::path& train_dir, int max_steps,
                               const std::vector<std::string>& more = {},
                               const ProcessOptions& options = {}) {
  return run_towers(quick_args(train_dir, max_steps, more), options);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

// "step N, loss = X" of each step line: what must repeat; time and rate left out.
inline std::vector<std::string> losses_of(const std::string& out) {
  static const std::regex kStepLine(
      R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: (step \d+, loss = -?\d+\.\d\d) )"
      R"(\(\d+\.\d examples/sec; \d+\.\d{3} sec/batch\)$)");
  std::vector<std::string> losses;
  for (const std::string& line : lines_of(out))
    if (std::smatch match; std::regex_match(line, match, kStepLine)) losses.push_back(match[1]);
  return losses;
}

// The bytes of both files of a checkpoint.
inline std::string checkpoint_bytes(const std::filesystem::path& train_dir, int step) {
  const std::string prefix = (train_dir / ("model.ckpt-" + std::to_string(step))).string();
  return read_file(prefix + ".index") + read_file(prefix + ".data-00000-of-00001");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace towers::test
