// Saving in the background: what is kept, resumed runs, readers beside it.

#include "data/checkpoint_saver.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <limits>
#include <thread>

#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::data {
namespace {

using Names = std::vector<std::string>;

// A checkpoint of step `step` whose every value is `step`.
struct Values {
  explicit Values(std::int64_t step, std::size_t size = 1000)
      : values(size, static_cast<float>(step)) {}
  std::vector<Tensor> tensors() const {
    return {test::float_tensor("w", {static_cast<std::int64_t>(values.size())}, values)};
  }
  std::vector<float> values;
};

void save(CheckpointSaver& saver, std::int64_t step) {
  Values values(step);
  CHECK(saver.save(step, values.tensors()).empty());
  std::fill(values.values.begin(), values.values.end(), -1.0f);  // the saver has its own copy
}

float first_value(const std::filesystem::path& prefix, std::size_t size = 1000) {
  std::vector<float> out(size);
  CheckpointReader(prefix).read("w", out);
  CHECK(std::count(out.begin(), out.end(), out.front()) == static_cast<std::ptrdiff_t>(size));
  return out.front();
}

Names kept(const std::filesystem::path& dir) {
  Names names;
  for (const auto& prefix : read_checkpoint_state(dir).all) names.push_back(prefix.filename());
  return names;
}

// Files of the checkpoints of `steps`, and the state file.
Names files_of(const std::vector<int>& steps) {
  Names names{"checkpoint"};
  for (const int step : steps)
    for (const char* suffix : {".data-00000-of-00001", ".index"})
      names.push_back("model.ckpt-" + std::to_string(step) + suffix);
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("Each save becomes the latest, and the oldest beyond max_to_keep go") {
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), 3);
  CHECK(saver.latest().empty());
  for (int step = 0; step < 6; ++step) {
    save(saver, step);
    CHECK(saver.wait().empty());
    CHECK_FALSE(saver.last_failed());
    CHECK(saver.latest() == checkpoint_prefix(folder.path(), step));
    CHECK(read_checkpoint_state(folder.path()).latest == saver.latest());
    CHECK(first_value(saver.latest()) == static_cast<float>(step));
  }
  CHECK(test::names_in(folder.path()) == files_of({3, 4, 5}));
  CHECK(kept(folder.path()) == Names{"model.ckpt-3", "model.ckpt-4", "model.ckpt-5"});
}

TEST_CASE("max_to_keep 0 keeps all, 1 keeps the last") {
  const auto [max_to_keep, steps] =
      GENERATE(table<int, std::vector<int>>({{0, {0, 1, 2, 3, 4, 5, 6, 7}}, {1, {7}}}));
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), max_to_keep);
  for (int step = 0; step < 8; ++step) save(saver, step);
  CHECK(saver.wait().empty());
  CHECK(test::names_in(folder.path()) == files_of(steps));
}

TEST_CASE("Destruction waits for the save under way") {
  const test::TemporaryFolder folder;
  { save(*std::make_unique<CheckpointSaver>(folder.path(), 5), 8); }
  CHECK(first_value(folder.path() / "model.ckpt-8") == 8.0f);
}

TEST_CASE("A resumed run's saver goes on with the checkpoints it finds") {
  const test::TemporaryFolder folder;
  {
    CheckpointSaver saver(folder.path(), 3);
    for (int step = 0; step < 3; ++step) save(saver, step);
  }
  CheckpointSaver saver(folder.path(), 3);
  CHECK(saver.latest() == checkpoint_prefix(folder.path(), 2));
  save(saver, 2);  // the same step again takes its place
  CHECK(saver.wait().empty());
  CHECK(test::names_in(folder.path()) == files_of({0, 1, 2}));
  save(saver, 3);
  CHECK(saver.wait().empty());
  CHECK(test::names_in(folder.path()) == files_of({1, 2, 3}));
}

TEST_CASE("A whole checkpoint that a killed run did not get to name is the first to go") {
  const test::TemporaryFolder folder;
  {
    CheckpointSaver saver(folder.path(), 2);
    for (const int step : {1, 2}) save(saver, step);
  }
  write_checkpoint(checkpoint_prefix(folder.path(), 5), Values(5).tensors());
  write_checkpoint(checkpoint_prefix(folder.path(), 0), Values(0).tensors());  // no leftover
  CheckpointSaver saver(folder.path(), 3);
  CHECK(saver.latest() == checkpoint_prefix(folder.path(), 2));
  save(saver, 3);
  CHECK(saver.wait().empty());
  CHECK(test::names_in(folder.path()) == files_of({0, 1, 2, 3}));
}

TEST_CASE("Of TensorFlow's checkpoints all shards go, and nothing that it does not own") {
  const test::TemporaryFolder folder, other;
  for (const char* name : {"model.ckpt-0.index", "model.ckpt-0.data-00000-of-00002",
                           "model.ckpt-0.data-00001-of-00002", "model.ckpt-0.meta",
                           "model.ckpt-00.index", "model.ckpt-00.data-00000-of-00001"})
    test::write_file(folder.path() / name, "");
  test::write_file(other.path() / "model.ckpt-5.index", "");
  test::write_file(folder.path() / "checkpoint",
                   "model_checkpoint_path: \"model.ckpt-0\"\nall_model_checkpoint_paths: \"" +
                       (other.path() / "model.ckpt-5").string() +
                       "\"\nall_model_checkpoint_paths: \"model.ckpt-0\"\n");
  CheckpointSaver saver(folder.path(), 1);
  save(saver, 1);
  CHECK(saver.wait().empty());
  Names want = files_of({1});
  want.insert(want.end(),
              {"model.ckpt-0.meta", "model.ckpt-00.index", "model.ckpt-00.data-00000-of-00001"});
  std::sort(want.begin(), want.end());
  CHECK(test::names_in(folder.path()) == want);
  CHECK(test::names_in(other.path()) == Names{"model.ckpt-5.index"});
}

TEST_CASE("A save that fails is reported once, and the next one may succeed") {
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), 5);
  save(saver, 1);
  Values bad(2);
  bad.values[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(saver.save(2, bad.tensors()).empty());
  const Values good(3);
  const std::string message = saver.save(3, good.tensors());
  CHECK(test::contains(message, "model.ckpt-2 is not written: element 7 of w is not finite"));
  CHECK(saver.wait().empty());
  CHECK_FALSE(saver.last_failed());
  CHECK(test::names_in(folder.path()) == files_of({1, 3}));
}

TEST_CASE("After a failed save the last good checkpoint stays the latest") {
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), 1);
  save(saver, 1);
  Values bad(2);
  bad.values[7] = std::numeric_limits<float>::infinity();
  CHECK(saver.save(2, bad.tensors()).empty());
  CHECK_FALSE(saver.wait().empty());
  CHECK(saver.wait().empty());  // reported already
  CHECK(saver.last_failed());
  CHECK(saver.latest() == checkpoint_prefix(folder.path(), 1));
  CHECK(read_checkpoint_state(folder.path()).latest == saver.latest());
  CHECK(test::names_in(folder.path()) == files_of({1}));
}

TEST_CASE("A checkpoint that can't be deleted is reported and tried again") {
  const test::TemporaryFolder folder;
  CheckpointSaver saver(folder.path(), 1);
  save(saver, 1);
  CHECK(saver.wait().empty());
  // A folder in the way of one of its files.
  const auto blocked = folder.path() / "model.ckpt-1.data-00000-of-00001";
  std::filesystem::remove(blocked);
  std::filesystem::create_directories(blocked / "inside");
  save(saver, 2);
  CHECK(test::contains(saver.wait(), "cannot delete " + blocked.string()));
  CHECK_FALSE(saver.last_failed());  // the save itself is good
  CHECK(saver.latest() == checkpoint_prefix(folder.path(), 2));
  std::filesystem::remove(blocked / "inside");
  save(saver, 3);
  CHECK(saver.wait().empty());
  CHECK(test::names_in(folder.path()) == files_of({3}));
}

TEST_CASE("A reader beside the saver sees whole checkpoints alone, over 100 saves") {
  const test::TemporaryFolder folder;
  std::atomic<bool> done{false};
  std::string faults;  // Catch's macros are for one thread
  int seen = 0;
  std::thread reader([&] {
    float last = -1;
    std::vector<float> values(1000);
    while (!done) {
      faults += test::error_of([&] {
        const auto latest = read_checkpoint_state(folder.path()).latest;
        if (latest.empty()) return;
        CheckpointReader(latest).read("w", values);
        if (values.front() < last) faults += "went back to an older one";
        if (values.front() != values.back()) faults += "a mixture of two";
        seen += values.front() != last ? 1 : 0;
        last = values.front();
      });
    }
  });
  {
    CheckpointSaver saver(folder.path(), 0);
    for (int step = 0; step < 100; ++step) save(saver, step);
    CHECK(saver.wait().empty());
  }
  done = true;
  reader.join();
  CHECK(faults == "");
  CHECK(seen > 0);
}

TEST_CASE("A full disk costs a message, and leaves no half file") {
  // A limit on the size of files stands in for the disk's end, in a process of its own.
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    int result = 1;
    try {
      CheckpointSaver saver(folder.path(), 5);
      save(saver, 1);
      saver.wait();
      const rlimit limit{100000, 100000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const Values large(2, 100000);
      saver.save(2, large.tensors());
      const std::string message = saver.wait();
      save(saver, 3);  // small enough
      result =
          test::contains(message, "cannot write " + folder.path().string()) &&
                  test::contains(message, "model.ckpt-2.data-00000-of-00001: File too large") &&
                  saver.wait().empty()
              ? 0
              : 2;
    } catch (...) {
    }
    ::_exit(result);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(test::names_in(folder.path()) == files_of({1, 3}));
}

}  // namespace
}  // namespace towers::data
