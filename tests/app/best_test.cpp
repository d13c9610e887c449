// The best checkpoint of the evaluations during a run.

#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

// "0.103" of each precision line.
std::vector<std::string> precisions_of(const std::string& out) {
  const std::string mark = ": precision @ 1 = ";
  std::vector<std::string> found;
  for (const std::string& line : lines_of(out))
    if (const auto at = line.find(mark); at != std::string::npos)
      found.push_back(line.substr(at + mark.size()));
  return found;
}

std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(dir)) names.push_back(file.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("flag --eval_every keeps the best checkpoint, through resumes, until a new run") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", best = run / "best";
  const std::vector<std::string> flags = {"--batch_size=64", "--eval_every=2", "--max_to_keep=1"};
  const ProcessResult first = quick_run(run, 4, flags);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  const std::vector<std::string> precisions = precisions_of(first.out);  // steps 2 and 3, the last
  REQUIRE(precisions.size() == 2);
  const bool second = fs::exists(best / "model.ckpt-3.index");
  CHECK((second ? precisions[1] >= precisions[0] : precisions[0] >= precisions[1]));
  const std::string name = second ? "model.ckpt-3" : "model.ckpt-2";
  CHECK(names_in(best) == std::vector<std::string>{"checkpoint", name + ".data-00000-of-00001",
                                                   name + ".index", "precision.txt"});
  const ProcessResult eval = run_towers(
      {"eval", "--dataset=synthetic", "--device=cpu", "--batch_size=64", "--run_once",
       "--checkpoint_dir=" + best.string(), "--eval_dir=" + (folder.path() / "eval").string()});
  CHECK(precisions_of(eval.out) == std::vector<std::string>{precisions[second ? 1 : 0]});

  // What is there is known to a resumed run: better than all to come, then worse.
  std::vector<std::string> more = flags;
  more.push_back("--resume");
  write_file(best / "precision.txt", "model.ckpt-1 0.5\n" + name + " 1.0\n");
  REQUIRE(quick_run(run, 5, more).exit_code == 0);
  CHECK(fs::exists(best / (name + ".index")));
  CHECK_FALSE(fs::exists(best / "model.ckpt-4.index"));
  write_file(best / "precision.txt", name + " 0.0\n");
  write_file(best / "model.ckpt-9.data-00000-of-00001", "half of one that was killed");
  REQUIRE(quick_run(run, 6, more).exit_code == 0);
  CHECK(names_in(best) == std::vector<std::string>{"checkpoint", "model.ckpt-5.data-00000-of-00001",
                                                   "model.ckpt-5.index", "precision.txt"});
  CHECK(contains(read_file(best / "precision.txt"), "model.ckpt-5 0."));

  // As all else of the former run it goes when a new one begins, which needs no --overwrite.
  REQUIRE(quick_run(run, 1).exit_code == 0);
  CHECK_FALSE(fs::exists(best));
}

TEST_CASE("a folder `best` of somebody else's is foreign, and one that cannot be is told") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  fs::create_directories(run / "best");
  write_file(run / "best" / "notes.txt", "mine");
  CHECK(quick_run(run, 1).exit_code == 1);
  CHECK(quick_run(run, 1, {"--overwrite"}).exit_code == 0);
  CHECK(read_file(run / "best" / "notes.txt") == "mine");

  fs::remove_all(run / "best");
  write_file(run / "best", "a file");
  const ProcessResult told =
      quick_run(run, 3, {"--overwrite", "--eval_every=2", "--batch_size=64"});
  CHECK(told.exit_code == 1);
  CHECK(contains(told.err, "cannot make the folder " + (run / "best").string()));
  CHECK(contains(told.err, "the last good checkpoint is"));
  CHECK(read_file(run / "best") == "a file");
}
