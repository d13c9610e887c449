// How a run ends: signals, limits, divergence, a closed stdout, a full disk, a bad command line.

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <regex>
#include <thread>

#include "data/checkpoint.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

TEST_CASE("SIGINT, SIGTERM, SIGHUP and SIGUSR1 save and end") {
  struct Case {
    int signal, exit_code;
  };
  for (const Case& c :
       {Case{SIGINT, 130}, Case{SIGTERM, 143}, Case{SIGHUP, 129}, Case{SIGUSR1, 0}}) {
    INFO(c.signal);
    TemporaryFolder folder;
    Process run(quick_args(folder.path() / "run", 1000000));
    REQUIRE(run.wait_for_output("step 10,"));
    run.signal(c.signal);
    const ProcessResult result = run.wait();
    CHECK(result.exit_code == c.exit_code);
    CHECK(contains(result.err, "resume with: "));
    const fs::path latest = towers::data::read_checkpoint_state(folder.path() / "run").latest;
    const towers::data::CheckpointReader reader(latest);
    CHECK(reader.read_integer("global_step") > 10);
    CHECK(contains(result.err,
                   "stopped after step " + std::to_string(reader.read_integer("global_step") - 1)));
    CHECK_FALSE(fs::exists(folder.path() / "run/lock"));
  }
}

TEST_CASE("SIGUSR1 before the first step is remembered") {
  TemporaryFolder folder;
  Process run(quick_args(folder.path() / "run", 1000000));
  while (!fs::exists(folder.path() / "run/lock")) std::this_thread::yield();
  run.signal(SIGUSR1);
  CHECK(run.wait().exit_code == 0);
  CHECK_FALSE(towers::data::read_checkpoint_state(folder.path() / "run").latest.empty());
}

TEST_CASE("a signal before the first step ends the run at once") {
  // A server that never answers holds the start.
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(server, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(server, 8) == 0);
  REQUIRE(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const std::string url =
      "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/archive.tar.gz";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    INFO(signal);
    TemporaryFolder folder;
    Process run({"--device=cpu", "--train_dir=" + (folder.path() / "run").string(),
                 "--data_dir=" + (folder.path() / "data").string(), "--data_url=" + url},
                {.environment = {"no_proxy=127.0.0.1"}});
    while (!fs::exists(folder.path() / "data/cifar-10-binary.tar.gz.part"))
      std::this_thread::yield();
    run.signal(signal);
    const ProcessResult result = run.wait();
    CHECK(result.exit_code == 128 + signal);
    // The first process of a container lives on where nothing but the default would end it.
    CHECK_FALSE(result.by_signal);
    CHECK(quick_run(folder.path() / "run", 1).exit_code == 0);
  }
  ::close(server);
}

TEST_CASE("a second signal leaves a whole checkpoint") {
  TemporaryFolder folder;
  Process run(quick_args(folder.path() / "run", 1000000, {"--checkpoint_every=1"}));
  REQUIRE(run.wait_for_output("step 10,"));
  run.signal(SIGINT);
  run.signal(SIGINT);
  CHECK(run.wait().exit_code == 130);
  CHECK(quick_run(folder.path() / "run", 2, {"--resume"}).exit_code == 0);
  const towers::data::CheckpointReader reader(
      towers::data::read_checkpoint_state(folder.path() / "run").latest);
  std::vector<float> weights(102400);
  reader.read("conv2/weights", weights);
}

TEST_CASE("a signal told twice at once is one request, and its steps are saved") {
  TemporaryFolder folder;
  Process run(quick_args(folder.path() / "run", 1000000, {"--checkpoint_every=1000000"}));
  REQUIRE(run.wait_for_output("step 10,"));
  run.signal(SIGTERM);
  run.signal(SIGTERM);
  const ProcessResult result = run.wait();
  CHECK(result.exit_code == 143);
  CHECK(contains(result.err, "resume with: "));
  CHECK(towers::data::read_checkpoint_state(folder.path() / "run").latest.filename() !=
        "model.ckpt-0");
}

TEST_CASE("flag --max_seconds saves and ends with exit code 0") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 1000000, {"--max_seconds=0.3"});
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "resume with: "));
  CHECK_FALSE(towers::data::read_checkpoint_state(folder.path() / "run").latest.empty());
}

TEST_CASE("a diverged run names step, value and the last good checkpoint, and saves nothing more") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 200, {"--learning_rate=1e12", "--checkpoint_every=1"});
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "Model diverged with loss = NaN"));
  std::smatch match;
  REQUIRE(std::regex_search(run.err, match,
                            std::regex("NaN: step (\\d+),.*checkpoint is .*/model.ckpt-(\\d+)")));
  CHECK(std::stoi(match[2]) < std::stoi(match[1]));
  CHECK(fs::exists(folder.path() / ("run/model.ckpt-" + match[2].str() + ".index")));
  CHECK(contains(run.err, "is not finite"));
  const towers::data::CheckpointReader reader(
      towers::data::read_checkpoint_state(folder.path() / "run").latest);
  std::vector<float> weights(884736);
  reader.read("local3/weights", weights);
  for (float w : weights) REQUIRE(std::isfinite(w));
}

TEST_CASE("a closed stdout ends quietly") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 15, {}, {.close_stdout_reader = true});
  CHECK_FALSE(contains(run.err, "rror"));
  CHECK(run.exit_code == 0);
}

TEST_CASE("a disk that is full is one clear line and exit code 1, and keeps what was saved") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 2).exit_code == 0);
  const ProcessResult run =
      quick_run(folder.path() / "run", 4, {"--resume"}, {.file_size_limit = 1 << 20});
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "model.ckpt-3"));
  CHECK(towers::data::read_checkpoint_state(folder.path() / "run").latest.filename() ==
        "model.ckpt-1");
  CHECK_FALSE(fs::exists(folder.path() / "run/model.ckpt-3.index"));
}

TEST_CASE("a misspelt flag ends with exit code 2, a suggestion, and nothing created") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 1, {"--bach_size=3"});
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "--batch_size"));
  CHECK(lines_of(run.err).size() == 1);
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("flag --help and --version go to stdout") {
  const ProcessResult help = run_towers({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(contains(help.out, "--num_gpus"));
  const ProcessResult version = run_towers({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(contains(version.out, "towers "));
  CHECK(version.err.empty());
}
