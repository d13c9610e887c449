// kill -9 at random moments of a run that saves at every step: nothing that was saved is lost.
//
// TOWERS_KILLS=200 in the environment asks for more kills, TOWERS_KILL_SEED for other moments.

#include <catch2/catch.hpp>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "data/checkpoint.h"
#include "data/run_folder.h"
#include "tests/app/quick_run.h"
#include "tests/app/run_check.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

// Small batches, so that most of the time goes into writing.
const std::vector<std::string> kSaveOften = {"--batch_size=2",       "--learning_rate=0.001",
                                             "--checkpoint_every=1", "--max_to_keep=2",
                                             "--display_every=1",    "--summary_every=2"};

// What the dead process was doing, as far as its files tell.
std::string moment_of(const fs::path& dir) {
  if (!fs::exists(dir)) return "before the folder";
  std::string moment;
  for (const auto& file : fs::directory_iterator(dir))
    if (const std::string name = file.path().filename().string(); contains(name, ".tmp."))
      moment += " writing " + name.substr(0, name.rfind(".tmp."));
  return moment.empty() ? "between writes" : moment;
}

}  // namespace

TEST_CASE("killed at random moments, a run loses nothing that was saved") {
  const int kills = number_from("TOWERS_KILLS", 8);
  const int seed = number_from("TOWERS_KILL_SEED", static_cast<int>(std::random_device()() >> 1));
  std::cout << kills << " kills, TOWERS_KILL_SEED=" << seed << std::endl;
  std::mt19937 random(static_cast<unsigned>(seed));
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  std::int64_t steps = 0;
  int in_a_write = 0;

  for (int kill = 0; kill < kills; ++kill) {
    // Now and then a new run is killed, which deletes the former one's files first.
    const bool anew = random() % 4 == 0;
    // A third in the start, the others among the saves that every step makes.
    const bool started = random() % 3 != 0;
    const int milliseconds = static_cast<int>(random() % (started ? 100 : 500));
    Process run(quick_args(dir, 1000000, with(kSaveOften, {anew ? "--noresume" : "--resume"})));
    if (started) REQUIRE(run.wait_for_output("loss = "));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    run.signal(SIGKILL);
    REQUIRE(run.wait().exit_code == 128 + SIGKILL);
    const std::string moment = moment_of(dir);
    if (contains(moment, "writing")) ++in_a_write;
    INFO("kill " << kill << (anew ? ", a new run" : ", resumed") << ", after " << milliseconds
                 << " ms: " << moment);
    if (!fs::exists(dir)) continue;
    REQUIRE(faults_in(dir) == "");
    if (!anew) CHECK(global_step_of(dir) >= steps);

    if (!towers::data::read_checkpoint_state(dir).latest.empty()) {
      const ProcessResult eval =
          run_towers({"eval", "--dataset=synthetic", "--device=cpu", "--run_once",
                      "--num_examples=8", "--batch_size=8", "--checkpoint_dir=" + dir.string(),
                      "--eval_dir=" + (folder.path() / "eval").string()});
      INFO(eval.err);
      REQUIRE(eval.exit_code == 0);
    }
    // A whole checkpoint that is not named yet is found, too.
    std::int64_t most = global_step_of(dir);
    if (const auto there = towers::data::checkpoints_in(dir); most == 0 && !there.empty())
      most = towers::data::CheckpointReader(there.back()).read_integer("global_step");
    const ProcessResult resumed =
        quick_run(dir, static_cast<int>(most) + 2, with(kSaveOften, {"--resume"}));
    INFO(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    REQUIRE(faults_after_end(dir, 2) == "");
    steps = global_step_of(dir);
    REQUIRE(steps == most + 2);
  }

  std::cout << in_a_write << " of them within the writing of a file" << std::endl;
  if (steps == 0) return;
  // And all those pieces made the same numbers as one run.
  REQUIRE(quick_run(folder.path() / "whole", static_cast<int>(steps),
                    {"--batch_size=2", "--learning_rate=0.001"})
              .exit_code == 0);
  const int last = static_cast<int>(steps) - 1;
  CHECK(checkpoint_bytes(dir, last) == checkpoint_bytes(folder.path() / "whole", last));
}
