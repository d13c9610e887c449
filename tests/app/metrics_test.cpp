// --metrics_log, run as people run it.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

std::vector<int> steps_in(const fs::path& csv) {
  std::vector<int> steps;
  for (const std::string& line : lines_of(read_file(csv)))
    if (!line.starts_with("step,")) steps.push_back(std::stoi(line));
  return steps;
}

}  // namespace

TEST_CASE("a metrics log and a timeline do not share a file") {
  TemporaryFolder folder;
  const auto dir = folder.path() / "run";
  const ProcessResult run =
      quick_run(dir, 1,
                {"--metrics_log=" + (folder.path() / "x.json").string(),
                 "--trace_file=" + (folder.path() / "." / "x.json").string()});
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "--trace_file and --metrics_log are both "));
  CHECK(run.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "x.json"));
}

TEST_CASE("a row with each step line, and the same numbers") {
  TemporaryFolder folder;
  const fs::path log = folder.path() / "a.jsonl";
  const ProcessResult run =
      quick_run(folder.path() / "run", 5, {"--display_every=2", "--metrics_log=" + log.string()});
  REQUIRE(run.exit_code == 0);
  const std::vector<std::string> rows = lines_of(read_file(log)), losses = losses_of(run.out);
  REQUIRE(rows.size() == 3);
  REQUIRE(losses.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto row = nlohmann::json::parse(rows[i]);
    char text[64];
    std::snprintf(text, sizeof text, "step %d, loss = %.2f", row["step"].get<int>(),
                  row["loss"].get<double>());
    CHECK(losses[i] == text);
    CHECK(row["loss"] > row["cross_entropy"]);
    CHECK(row["learning_rate"].get<double>() == Approx(0.1));
    CHECK(row["epoch"].get<double>() == Approx((row["step"].get<double>() + 1) * 8 / 50000));
  }
}

TEST_CASE(
    "a resumed run goes on in the log, a new one starts it again, in "
    "train_dir too") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", log = run / "metrics.csv";
  const std::vector<std::string> flags = {"--display_every=1", "--metrics_log=" + log.string()};
  REQUIRE(quick_run(run, 3, flags).exit_code == 0);
  CHECK(steps_in(log) == std::vector<int>{0, 1, 2});
  std::vector<std::string> more = flags;
  more.push_back("--resume");
  REQUIRE(quick_run(run, 5, more).exit_code == 0);
  CHECK(steps_in(log) == std::vector<int>{0, 1, 2, 3, 4});
  // The log is a former run's own file: flags.txt names it.
  const ProcessResult anew = quick_run(run, 2, flags);
  INFO(anew.err);
  REQUIRE(anew.exit_code == 0);
  CHECK(steps_in(log) == std::vector<int>{0, 1});
  REQUIRE(quick_run(run, 1).exit_code == 0);
  CHECK_FALSE(fs::exists(log));
}

TEST_CASE("a log that cannot be is found out before anything is deleted") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", notes = folder.path() / "notes.csv";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const std::string before = checkpoint_bytes(run, 0);
  write_file(notes, "my,own\n");
  CHECK(quick_run(run, 1, {"--metrics_log=" + notes.string()}).exit_code == 1);
  CHECK(quick_run(run, 1, {"--metrics_log=" + (run / "metrics.txt").string()}).exit_code == 2);
  CHECK(checkpoint_bytes(run, 0) == before);
  CHECK(read_file(notes) == "my,own\n");
}

TEST_CASE("a resumed run leaves the log of another run alone") {
  TemporaryFolder folder;
  const fs::path log = folder.path() / "other.csv", run = folder.path() / "run";
  REQUIRE(
      quick_run(folder.path() / "other", 4, {"--display_every=1", "--metrics_log=" + log.string()})
          .exit_code == 0);
  REQUIRE(quick_run(run, 2).exit_code == 0);
  const ProcessResult resumed = quick_run(run, 4, {"--resume", "--metrics_log=" + log.string()});
  CHECK(resumed.exit_code == 1);
  CHECK(contains(resumed.err, "holds the rows of another run"));
  CHECK(steps_in(log) == std::vector<int>{0, 1, 2, 3});
  // A new log begins where the run goes on.
  const fs::path own = folder.path() / "own.csv";
  REQUIRE(quick_run(run, 4, {"--resume", "--display_every=1", "--metrics_log=" + own.string()})
              .exit_code == 0);
  CHECK(steps_in(own) == std::vector<int>{2, 3});
}

TEST_CASE("a run that is given another's flags leaves that one's log alone") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", log = folder.path() / "metrics.csv";
  REQUIRE(quick_run(run, 1, {"--metrics_log=" + log.string()}).exit_code == 0);
  const std::string before = read_file(log);
  const ProcessResult other =
      run_towers({"--flagfile=" + (run / "flags.txt").string(), "--max_steps=2",
                  "--train_dir=" + (folder.path() / "other").string()});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "holds the rows of another run"));
  CHECK(read_file(log) == before);
}

TEST_CASE("a log in the run's folder goes with the folder, and another run has its own") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", moved = folder.path() / "moved",
                 other = folder.path() / "other";
  const std::string given = GENERATE("{train_dir}/metrics.csv", "");
  REQUIRE(quick_run(run, 3,
                    {"--display_every=1",
                     "--metrics_log=" + (given.empty() ? (run / "metrics.csv").string() : given)})
              .exit_code == 0);
  REQUIRE(steps_in(run / "metrics.csv") == std::vector<int>{0, 1, 2});

  REQUIRE(run_towers({"--flagfile=" + (run / "flags.txt").string(), "--max_steps=2",
                      "--train_dir=" + other.string()})
              .exit_code == 0);
  CHECK(steps_in(other / "metrics.csv") == std::vector<int>{0, 1});
  CHECK(steps_in(run / "metrics.csv") == std::vector<int>{0, 1, 2});

  fs::rename(run, moved);
  const std::vector<std::string> again = {"--flagfile=" + (moved / "flags.txt").string(),
                                          "--train_dir=" + moved.string(), "--max_steps=5"};
  std::vector<std::string> resume = again;
  resume.push_back("--resume");
  const ProcessResult resumed = run_towers(resume);
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(steps_in(moved / "metrics.csv") == std::vector<int>{0, 1, 2, 3, 4});
  // A new run in its place deletes it as its own.
  std::vector<std::string> anew = again;
  anew.push_back("--overwrite");
  REQUIRE(run_towers(anew).exit_code == 0);
  CHECK(steps_in(moved / "metrics.csv") == std::vector<int>{0, 1, 2, 3, 4});
  CHECK_FALSE(fs::exists(run));
}
