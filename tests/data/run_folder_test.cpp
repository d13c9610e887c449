// Whose folder is it: nothing foreign is ever deleted, one run at a time, clear refusals.

#include "data/run_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "data/file.h"
#include "tests/data/output_support.h"
#include "tests/data/without_rights.h"
#include "tests/support.h"

namespace towers::data {
namespace {

using Mode = RunFolder::Mode;
using Names = std::vector<std::string>;

const Names kOwn{"checkpoint",
                 "events.out.tfevents.1700000000.host",
                 "events.out.tfevents.1700000000.host.12.0",
                 "flags.txt",
                 "model.ckpt-0.data-00000-of-00001",
                 "model.ckpt-0.index",
                 "model.ckpt-12000.data-00001-of-00003",
                 "model.ckpt-12000.index"};
const Names kTemporary{"checkpoint.tmp.77", "flags.txt.tmp.1", "model.ckpt-5.index.tmp.31337",
                       "lock.tmp.5"};

struct Folder {
  explicit Folder(const Names& names = {}) {
    for (const std::string& name : names) test::write_file(path / name, content_of(name));
  }
  // A flags.txt without the mark would be somebody's own.
  static std::string content_of(const std::string& name) {
    return name == "flags.txt" ? std::string(kFlagsFileMark) + "\n" : "content";
  }
  std::string error(Mode mode) const {
    return test::error_of([&] { RunFolder run(path, mode); });
  }
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path();
};

std::string refusal(const std::filesystem::path& dir, Mode mode) {
  return test::error_of([&] { RunFolder run(dir, mode); });
}

TEST_CASE("A new folder is made, with its parents") {
  const Folder folder;
  const auto dir = folder.path / "a" / "b";
  for (const Mode mode : {Mode::fresh, Mode::overwrite, Mode::resume}) {
    RunFolder run(dir, mode);
    run.clear();
    CHECK(run.path() == dir);
    CHECK(run.notice().empty());
    CHECK(test::names_in(dir) == Names{"lock"});
    CHECK(test::read_file(dir / "lock") == std::to_string(::getpid()) + "\n");
  }
  CHECK(test::names_in(dir).empty());  // the lock goes with the run
}

TEST_CASE("A fresh run deletes a former run's own files and says so") {
  const Folder folder(kOwn);
  for (const std::string& name : kTemporary) test::write_file(folder.path / name, "");
  test::write_file(folder.path / "lock", "4242\n");  // of a run that was killed
  Names before = test::names_in(folder.path);
  RunFolder run(folder.path, Mode::fresh);
  CHECK(test::names_in(folder.path) == before);
  run.clear();
  CHECK(test::names_in(folder.path) == Names{"lock"});
  CHECK(run.notice() == "deleted 8 files of a former run in " + folder.path.string());
}

TEST_CASE("Checkpoints without a flags.txt are not a run's own until somebody says so") {
  const Names unclaimed{"checkpoint", "events.out.tfevents.1700000000.host",
                        "model.ckpt-0.data-00000-of-00001", "model.ckpt-0.index"};
  const Folder folder(unclaimed);
  const std::string error = folder.error(Mode::fresh);
  CHECK(test::contains(error, "model.ckpt-0."));
  CHECK(test::contains(error, "--overwrite"));
  CHECK(test::names_in(folder.path) == unclaimed);
  test::write_file(folder.path / "flags.txt", "--my=own\n");
  CHECK(test::contains(folder.error(Mode::fresh), "flags.txt"));
  std::filesystem::remove(folder.path / "flags.txt");
  RunFolder run(folder.path, Mode::overwrite);
  run.clear();
  CHECK(test::names_in(folder.path) == Names{"lock"});
}

TEST_CASE("Foreign content refuses a fresh run, and nothing is touched") {
  // Near misses of own names, TensorFlow's other files, folders, links.
  const std::string name =
      GENERATE("keep.txt", "model.ckpt-0.meta", "graph.pbtxt", "model.ckpt-x.index",
               "model.ckpt-1.index.bak", "model.ckpt-1.data-0-of-1", "checkpoint~", "my_flags.txt",
               ".hidden", "events.out.tfevents.", "checkpoint.tmp.x", "notes.tmp.5",
               "checkpoint.tmp.", "model.ckpt-1");
  Folder folder(kOwn);
  test::write_file(folder.path / name, "mine");
  const Names before = test::names_in(folder.path);
  const std::string message = folder.error(Mode::fresh);
  CHECK(test::contains(message, folder.path.string() + " holds " + name + ","));
  for (const char* way : {"--overwrite", "--resume", "another folder"})
    CHECK(test::contains(message, way));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(test::names_in(folder.path) == before);
}

TEST_CASE("Folders and links are foreign, whatever their names") {
  const Folder folder, elsewhere({"model.ckpt-3.index"});
  std::filesystem::create_directory(folder.path / "flags.txt");
  CHECK(test::contains(folder.error(Mode::fresh), "holds flags.txt"));
  std::filesystem::remove(folder.path / "flags.txt");
  std::filesystem::create_symlink(elsewhere.path / "model.ckpt-3.index",
                                  folder.path / "model.ckpt-3.index");
  CHECK(test::contains(folder.error(Mode::fresh), "holds model.ckpt-3.index"));
  RunFolder(folder.path, Mode::overwrite).clear();
  CHECK(std::filesystem::is_symlink(folder.path / "model.ckpt-3.index"));
  CHECK(test::names_in(elsewhere.path) == Names{"model.ckpt-3.index"});
}

TEST_CASE("An empty folder `best` may be anybody's, and stays") {
  const Folder folder(kOwn);
  std::filesystem::create_directory(folder.path / kBestFolder);
  for (const Mode mode : {Mode::resume, Mode::fresh, Mode::overwrite}) {
    RunFolder(folder.path, mode).clear();
    CHECK(std::filesystem::is_directory(folder.path / kBestFolder));
  }
}

TEST_CASE("overwrite deletes own files alone") {
  Folder folder(kOwn);
  test::write_file(folder.path / "keep.txt", "mine");
  std::filesystem::create_directory(folder.path / "photos");
  test::write_file(folder.path / "photos" / "checkpoint", "mine");
  RunFolder run(folder.path, Mode::overwrite);
  run.clear();
  CHECK(test::names_in(folder.path) == Names{"keep.txt", "lock", "photos"});
  CHECK(test::read_file(folder.path / "keep.txt") == "mine");
  CHECK(test::names_in(folder.path / "photos") == Names{"checkpoint"});
}

// Names in the order in which they are deleted from `dir` by `act`.
template <class Act>
Names deleted_by(const std::filesystem::path& dir, const Act& act) {
  const FileDescriptor watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  REQUIRE(::inotify_add_watch(watch.get(), dir.c_str(), IN_DELETE) >= 0);
  act();
  alignas(inotify_event) char events[1 << 16];
  const auto bytes = ::read(watch.get(), events, sizeof events);
  Names names;
  for (std::ptrdiff_t at = 0; at < bytes;) {
    inotify_event event;
    std::memcpy(&event, events + at, sizeof event);
    names.emplace_back(events + at + sizeof event);
    at += static_cast<std::ptrdiff_t>(sizeof event + event.len);
  }
  return names;
}

TEST_CASE("No index outlives its data in a deletion, however the folder is listed") {
  const bool of_best = GENERATE(false, true);
  const Folder folder(kOwn);
  const std::filesystem::path dir = of_best ? folder.path / kBestFolder : folder.path;
  std::filesystem::create_directories(dir);
  for (int step = 1; step <= 30; ++step)
    for (const char* part : {".data-00000-of-00001", ".index"})
      test::write_file(dir / ("model.ckpt-" + std::to_string(step) + part), "content");
  test::write_file(dir / "checkpoint", "model_checkpoint_path: \"model.ckpt-7\"\n");
  const Names names = deleted_by(dir, [&] { RunFolder(folder.path, Mode::overwrite).clear(); });
  const auto place = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  for (int step = 1; step <= 30; ++step) {
    const std::string prefix = "model.ckpt-" + std::to_string(step);
    INFO(prefix);
    CHECK(place(prefix + ".index") < place(prefix + ".data-00000-of-00001"));
    if (step != 7) CHECK(place(prefix + ".data-00000-of-00001") < place("model.ckpt-7.index"));
  }
  CHECK(place("checkpoint") < place("model.ckpt-7.index"));
}

TEST_CASE("resume deletes what a killed run left half done alone") {
  Folder folder(kOwn);
  test::write_file(folder.path / "model.ckpt-7.data-00000-of-00001", "");  // without an index
  for (const std::string& name : kTemporary) test::write_file(folder.path / name, "");
  test::write_file(folder.path / "model.ckpt-0.meta", "");
  test::write_file(folder.path / "graph.pbtxt.tmp.5", "");
  RunFolder run(folder.path, Mode::resume);
  run.clear();
  Names want = kOwn;
  want.insert(want.end(), {"graph.pbtxt.tmp.5", "lock", "model.ckpt-0.meta"});
  std::sort(want.begin(), want.end());
  CHECK(test::names_in(folder.path) == want);
  CHECK(run.notice().empty());
}

TEST_CASE("A former run's file of another user in a sticky folder is refused at once") {
  if (::geteuid() != 0) return test::skip("needs root to make another user's files");
  const Folder folder(kOwn);
  std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
  for (const Mode mode : {Mode::fresh, Mode::overwrite, Mode::resume}) {
    const std::string message =
        test::error_without_rights([&] { RunFolder run(folder.path, mode); });
    CHECK(test::contains(message, "belongs to another user (uid 0)"));
    CHECK(test::contains(message, folder.path.string() + " is a sticky folder"));
  }
  // With files of one's own alone, such a folder is as good as any.
  for (const std::string& name : kOwn)
    REQUIRE(::chown((folder.path / name).c_str(), 65534, 65534) == 0);
  CHECK(test::error_without_rights([&] { RunFolder(folder.path, Mode::fresh).clear(); }) == "");
  CHECK(test::names_in(folder.path).empty());
}

TEST_CASE("The root and the home folder are refused however they are spelled") {
  const Mode mode = GENERATE(Mode::fresh, Mode::overwrite, Mode::resume);
  for (const char* root : {"/", "//", "/.", "/tmp/.."})
    CHECK(test::contains(refusal(root, mode), "which is the root folder"));

  const Folder home;
  const char* variable = std::getenv("HOME");
  const std::string before = variable == nullptr ? "" : variable;
  ::setenv("HOME", home.path.c_str(), 1);
  const Folder elsewhere;
  std::filesystem::create_directory_symlink(home.path, elsewhere.path / "link");
  const auto current = std::filesystem::current_path();
  std::filesystem::current_path(home.path);
  for (const std::filesystem::path& spelling :
       {home.path, home.path / "", home.path / ".", elsewhere.path / "link",
        elsewhere.path / "link" / "", std::filesystem::path(".")})
    CHECK(test::contains(refusal(spelling, mode), "which is your home folder"));
  CHECK(test::contains(refusal("", mode), "is empty"));
  std::filesystem::current_path(current);
  CHECK(test::names_in(home.path).empty());
  CHECK(refusal(home.path / "train", mode).empty());
  ::setenv("HOME", "/nonexistent", 1);  // HOME may lie; the user's record does not
  if (const passwd* user = ::getpwuid(::geteuid()); user != nullptr && *user->pw_dir != '\0')
    CHECK(test::contains(refusal(user->pw_dir, mode), "refused to use"));
  ::setenv("HOME", before.c_str(), 1);
}

TEST_CASE("A link to a folder is used like the folder") {
  const Folder real(kOwn), elsewhere;
  const auto link = elsewhere.path / "train";
  std::filesystem::create_directory_symlink(real.path, link);
  RunFolder run(link / "", Mode::fresh);
  run.clear();
  CHECK(test::names_in(real.path) == Names{"lock"});
  CHECK(std::filesystem::is_symlink(link));
}

TEST_CASE("A second run in the folder is refused with the pid of the first") {
  const Folder folder;
  const RunFolder first(folder.path, Mode::fresh);
  write_file_atomically(folder.path / "flags.txt", Folder::content_of("flags.txt"));
  for (const Mode mode : {Mode::fresh, Mode::overwrite, Mode::resume}) {
    const std::string message = folder.error(mode);
    CHECK(test::contains(message, folder.path.string() + " is in use"));
    CHECK(test::contains(message, "(pid " + std::to_string(::getpid()) + ")"));
  }
  CHECK(test::names_in(folder.path) == Names{"flags.txt", "lock"});
}

TEST_CASE("Who asks whether a folder is in use keeps nobody out") {
  const Folder folder;
  CHECK_FALSE(is_in_use(folder.path));
  test::write_file(folder.path / "lock", "4242\n");  // of a run that was killed
  // As another process that is just asking.
  const int asking = ::open((folder.path / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(asking >= 0);
  REQUIRE(::flock(asking, LOCK_SH) == 0);
  CHECK_FALSE(is_in_use(folder.path));
  std::thread answered([asking] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::close(asking);
  });
  CHECK(folder.error(Mode::resume).empty());  // a run that starts meanwhile
  answered.join();
  const RunFolder run(folder.path, Mode::fresh);
  CHECK(is_in_use(folder.path));
}

TEST_CASE("A lock that is a link is not followed") {
  const Folder folder, elsewhere({"precious"});
  std::filesystem::create_symlink(elsewhere.path / "precious", folder.path / "lock");
  CHECK(test::contains(folder.error(Mode::resume), (folder.path / "lock").string()));
  CHECK(test::read_file(elsewhere.path / "precious") == "content");
}

TEST_CASE("A file where the folder should be") {
  const Folder folder({"train"});
  CHECK(test::contains(refusal(folder.path / "train", Mode::fresh),
                       (folder.path / "train").string()));
  CHECK(test::contains(refusal(folder.path / "train" / "a", Mode::fresh), "Not a directory"));
}

TEST_CASE("A folder that this user can't write to, list or make") {
  const Folder folder(kOwn);
  std::filesystem::permissions(folder.path, std::filesystem::perms(0555));
  const auto as_user = [&](const std::filesystem::path& dir, Mode mode) {
    return test::error_without_rights([&] { RunFolder run(dir, mode); });
  };
  for (const Mode mode : {Mode::fresh, Mode::overwrite, Mode::resume}) {
    const std::string message = as_user(folder.path, mode);
    CHECK(test::contains(message, "cannot write " + (folder.path / "lock").string()));
    CHECK(test::contains(message, "Permission denied"));
  }
  const std::string below = as_user(folder.path / "new", Mode::fresh);
  CHECK(test::contains(below, (folder.path / "new").string() + ": Permission denied"));
  const std::string probed =
      test::error_without_rights([&] { require_writable_folder(folder.path); });
  CHECK(test::contains(probed, "cannot write in " + folder.path.string() + ": Permission denied"));
  std::filesystem::permissions(folder.path, std::filesystem::perms(0333));
  CHECK(test::contains(as_user(folder.path, Mode::fresh), "cannot list"));
  std::filesystem::permissions(folder.path, std::filesystem::perms(0755));
  CHECK(test::names_in(folder.path) == kOwn);
}

TEST_CASE("A writable folder is left as it was found") {
  const Folder folder;
  require_writable_folder(folder.path / "new");
  CHECK(test::names_in(folder.path / "new").empty());
}

TEST_CASE("Free space is that of the nearest folder that is there") {
  const Folder folder;
  CHECK(free_bytes(folder.path) > 0);
  CHECK(free_bytes(folder.path / "not" / "yet") > 0);
  CHECK(free_bytes("relative/and/not/there") > 0);
}

TEST_CASE("Names of temporary files lead back to the final ones") {
  CHECK(final_name_of_temporary(temporary_name("/a/flags.txt").filename()) == "flags.txt");
  CHECK(final_name_of_temporary("a.tmp.1.tmp.2") == "a.tmp.1");
  for (const char* name : {"flags.txt", "a.tmp.", "a.tmp.-1", "a.tmp.1x", "a.tmp. 1", ""})
    CHECK(final_name_of_temporary(name).empty());
}

}  // namespace
}  // namespace towers::data
