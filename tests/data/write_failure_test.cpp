// Every write, sync and rename fails once, or is the process's last: nothing half stays under a
// final name, and what was good before stays good.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "data/checkpoint_saver.h"
#include "data/run_folder.h"
#include "tests/data/event_support.h"
#include "tests/data/failing_calls.h"
#include "tests/data/output_support.h"

namespace towers::data {
namespace {

using test::Failure;
using Names = std::vector<std::string>;

const std::vector<float> kOld(300, 1.0f), kNew(300, 2.0f);

std::vector<Tensor> tensors(const std::vector<float>& values) {
  return {test::float_tensor("a", {300}, values), test::float_tensor("b", {300}, values)};
}

std::vector<float> read(const std::filesystem::path& prefix) {
  std::vector<float> values(300);
  const CheckpointReader reader(prefix);
  reader.read("a", values);
  reader.read("b", values);
  return values;
}

// Runs `attempt` with its first, second, ... call failing until it makes no more calls; `check`
// looks at what each failure left. Returns the number of failures.
template <typename Attempt, typename Check>
int fail_each_call(Failure failure, int error, const Attempt& attempt, const Check& check) {
  for (int n = 0;; ++n) {
    test::fail_call(n, failure, error);
    const std::string message = attempt();
    if (!test::call_failed()) {
      CHECK(message == "");
      return n;
    }
    INFO("call " << n << ": " << message);
    check(message);
  }
}

TEST_CASE("A checkpoint that fails to be written leaves nothing") {
  struct Fault {
    Failure failure;
    int error;
    const char* reason;
  };
  const Fault fault =
      GENERATE(Fault{Failure::error, ENOSPC, "No space left on device; free some space"},
               Fault{Failure::error, EIO, "Input/output error; check the disk"},
               Fault{Failure::half_write, ENOSPC, "No space left on device"});
  const test::TemporaryFolder folder;
  const auto prefix = folder.path() / "model.ckpt-1";
  const int calls = fail_each_call(
      fault.failure, fault.error,
      [&] { return test::error_of([&] { write_checkpoint(prefix, tensors(kNew)); }); },
      [&](const std::string& message) {
        CHECK(test::contains(message, folder.path().string()));
        CHECK(test::contains(message, fault.reason));
        CHECK(test::names_in(folder.path()).empty());
      });
  CHECK(calls >= 8);  // 3 writes, 2 syncs, 2 renames, 1 sync of the folder
}

TEST_CASE("An interrupted or short write is completed") {
  const test::TemporaryFolder folder;
  const auto prefix = folder.path() / "model.ckpt-1";
  for (int n = 0; n < 5; ++n) {  // writes and syncs
    test::fail_call(n, Failure::error, EINTR);
    write_checkpoint(prefix, tensors(kNew));
    CHECK(test::call_failed());
    CHECK(read(prefix) == kNew);
  }
}

TEST_CASE("A failed save leaves the last good checkpoint the latest, wherever it fails") {
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), 2);
  saver.save(1, tensors(kOld));
  CHECK(saver.wait() == "");
  const int calls = fail_each_call(
      Failure::error, ENOSPC,
      [&] {
        saver.save(2, tensors(kNew));
        return saver.wait();
      },
      [&](const std::string& message) {
        CHECK(test::contains(message, folder.path().string()));
        CHECK(saver.last_failed());
        const auto state = read_checkpoint_state(folder.path());
        CHECK((read(state.latest) == kOld || read(state.latest) == kNew));
        CHECK(read(saver.latest()) == kOld);
        for (const std::string& name : test::names_in(folder.path()))
          CHECK_FALSE(test::contains(name, ".tmp."));
      });
  CHECK(calls >= 12);
  CHECK(read(saver.latest()) == kNew);
}

TEST_CASE("Killed anywhere in a save, the state file names a whole checkpoint") {
  for (int n = 0;; ++n) {
    INFO("call " << n);
    const test::TemporaryFolder folder;
    const auto dir = folder.path() / "train";
    const auto old = checkpoint_prefix(dir, 1), next = checkpoint_prefix(dir, 2);
    { const RunFolder run(dir, RunFolder::Mode::fresh); }
    write_checkpoint(old, tensors(kOld));
    write_checkpoint_state(dir, {old, {old}, {}});
    const pid_t child = ::fork();
    if (child == 0) {
      test::fail_call(n, Failure::kill, 0);
      write_checkpoint(next, tensors(kNew));
      write_checkpoint_state(dir, {next, {old, next}, {}});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    const auto state = read_checkpoint_state(dir);
    CHECK(read(state.latest) == (state.latest == next ? kNew : kOld));
    // A run that resumes clears away what was begun.
    RunFolder resumed(dir, RunFolder::Mode::resume);
    resumed.clear();
    for (const std::string& name : test::names_in(dir)) CHECK_FALSE(test::contains(name, ".tmp."));
    if (WEXITSTATUS(status) == 0) {
      CHECK(n >= 12);
      return;
    }
  }
}

TEST_CASE("Killed anywhere in a save, the next run deletes what the killed one would have") {
  for (int n = 0;; ++n) {
    INFO("call " << n);
    const test::TemporaryFolder folder;
    const auto dir = folder.path() / "train";
    { const RunFolder run(dir, RunFolder::Mode::fresh); }
    const auto save = [](CheckpointSaver& saver, std::int64_t step) {
      saver.save(step, tensors(kOld));
      return saver.wait();
    };
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointSaver saver(dir, 2);
      save(saver, 1);
      save(saver, 2);
      test::fail_call(n, Failure::kill, 0);
      save(saver, 3);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    RunFolder resumed(dir, RunFolder::Mode::resume);
    resumed.clear();
    CheckpointSaver saver(dir, 2);
    CHECK(save(saver, 13) == "");
    CHECK(save(saver, 14) == "");
    Names names = test::names_in(dir);
    std::erase(names, "lock");
    CHECK(names == Names{"checkpoint", "model.ckpt-13.data-00000-of-00001", "model.ckpt-13.index",
                         "model.ckpt-14.data-00000-of-00001", "model.ckpt-14.index"});
    if (WEXITSTATUS(status) == 0) {
      CHECK(n >= 16);  // the state file is written before the deletion and after it
      return;
    }
  }
}

TEST_CASE(
    "Killed while it replaces a checkpoint of the same step, a run leaves the old or the new") {
  for (int n = 0;; ++n) {
    INFO("call " << n);
    const test::TemporaryFolder folder;
    const auto prefix = folder.path() / "model.ckpt-1";
    write_checkpoint(prefix, tensors(kOld));
    const pid_t child = ::fork();
    if (child == 0) {
      test::fail_call(n, Failure::kill, 0);
      write_checkpoint(prefix, tensors(kNew));
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    // Between the two renames there is no index; never one that does not fit the data.
    if (std::filesystem::exists(prefix.string() + ".index")) {
      const std::vector<float> values = read(prefix);
      CHECK((values == kOld || values == kNew));
    }
    if (WEXITSTATUS(status) == 0) return;
  }
}

TEST_CASE("A file is written whole or the old one stays") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "flags.txt";
  write_file_atomically(path, "old\n");
  fail_each_call(
      Failure::half_write, EDQUOT,
      [&] { return test::error_of([&] { write_file_atomically(path, "new content\n"); }); },
      [&](const std::string& message) {
        CHECK(test::contains(message, folder.path().string()));
        const std::string content = test::read_file(path);
        CHECK((content == "old\n" || content == "new content\n"));
        CHECK(test::names_in(folder.path()) == Names{"flags.txt"});
        write_file_atomically(path, "old\n");
      });
  CHECK(test::read_file(path) == "new content\n");
}

TEST_CASE("An event file that fails to be written stays readable, and goes on later") {
  const Failure failure = GENERATE(Failure::error, Failure::half_write);
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path(), std::chrono::hours(1));
  const auto add = [&](std::int64_t step) {
    return test::error_of([&] {
      writer.add_session_start(step);
      writer.flush();
    });
  };
  CHECK(add(1) == "");
  test::fail_call(0, failure, ENOSPC);
  const std::string message = add(2);
  CHECK(test::call_failed());
  CHECK(test::contains(message, "cannot write " + writer.path().string() + ": No space left"));
  CHECK(add(3) == "");
  const auto events = test::read_events(writer.path());
  REQUIRE(events.size() == 3);
  CHECK(events[1].step() == 1);
  CHECK(events[2].step() == 3);
}

TEST_CASE("An error of the event file's own thread comes out of the next call") {
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path(), std::chrono::milliseconds(0));
  test::fail_call(0, Failure::error, EIO);
  writer.add_session_start(1);
  std::string message;
  while (message.empty()) message = test::error_of([&] { writer.add_session_start(2); });
  CHECK(test::call_failed());
  CHECK(test::contains(message, "Input/output error"));
}

TEST_CASE(
    "A file that is written whole takes no device's or pipe's place, and stays behind its link") {
  const test::TemporaryFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe", file = folder.path() / "file";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(test::contains(test::error_of([&] { write_file_atomically(pipe, "text"); }),
                       "not a plain file"));
  CHECK(std::filesystem::is_fifo(pipe));

  test::write_file(file, "old");
  std::filesystem::create_symlink(file, folder.path() / "link");
  write_file_atomically(folder.path() / "link", "new");
  CHECK(std::filesystem::is_symlink(folder.path() / "link"));
  CHECK(test::read_file(file) == "new");
}

TEST_CASE("An event file that can't be begun is not left behind") {
  const test::TemporaryFolder folder;
  test::fail_call(0, Failure::half_write, ENOSPC);
  const std::string message = test::error_of([&] { EventFileWriter writer(folder.path()); });
  CHECK(test::call_failed());
  CHECK(test::contains(message, "No space left"));
  CHECK(test::names_in(folder.path()).empty());
}

}  // namespace
}  // namespace towers::data
