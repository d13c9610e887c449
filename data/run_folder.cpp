#include "data/run_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "data/checkpoint.h"
#include "data/checkpoint_saver.h"
#include "data/file.h"
#include "data/trace_file.h"

namespace towers::data {
namespace {

constexpr std::string_view kLockFile = "lock";
constexpr std::string_view kInTrainDir = "{train_dir}/";

// Takes the digits at the start of `text` off it and returns how many there were.
std::size_t take_digits(std::string_view& text) {
  const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(n);
  return n;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// model.ckpt-STEP.index or model.ckpt-STEP.data-SSSSS-of-NNNNN
bool is_checkpoint_name(std::string_view name) {
  if (!take(name, "model.ckpt-") || take_digits(name) == 0) return false;
  if (name == ".index") return true;
  return take(name, ".data-") && take_digits(name) == 5 && take(name, "-of-") &&
         take_digits(name) == 5 && name.empty();
}

bool is_own_name(std::string_view name) {
  constexpr std::string_view kEvents = "events.out.tfevents.";
  return name == kStateFile || name == kFlagsFile || name == kLockFile ||
         is_checkpoint_name(name) || (name.starts_with(kEvents) && name.size() > kEvents.size());
}

bool is_own_temporary(const std::string& name) {
  return is_own_name(final_name_of_temporary(name));
}

// A flagfile that a person wrote may well have that name too.
bool is_own_flags_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe would be waited for
  std::ifstream file(path);
  std::string start(kFlagsFileMark.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) &&
         start == kFlagsFileMark;
}

// Whether it is the folder of the best checkpoint, with nothing of anybody else's in it.
bool is_own_best(const std::filesystem::path& dir) {
  std::error_code error;
  if (dir.filename() != kBestFolder ||
      std::filesystem::symlink_status(dir, error).type() != std::filesystem::file_type::directory)
    return false;
  for (const auto& file : std::filesystem::directory_iterator(dir, error)) {
    std::string name = file.path().filename().string();
    if (const std::string final = final_name_of_temporary(name); !final.empty()) name = final;
    const bool own = name == kStateFile || name == kPrecisionFile || name == kLockFile ||
                     is_checkpoint_name(name);
    if (!own || !std::filesystem::is_regular_file(file.symlink_status(error))) return false;
  }
  return !error;
}

struct Content {
  std::vector<std::filesystem::path> own, temporary, foreign;  // the lock is in none
  bool best = false;                                           // there is a folder of ours
};

// The name of the log that a run's flags.txt names, where it lies in `dir` too; empty: none.
std::string own_log(const std::filesystem::path& dir) {
  const std::string_view mark = "--metrics_log=";
  if (!is_own_flags_file(dir / kFlagsFile)) return {};
  std::ifstream lines(dir / kFlagsFile);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(mark)) continue;
    const std::filesystem::path log = file_of(line.substr(mark.size()), dir);
    std::error_code error;
    if (std::filesystem::equivalent(log.parent_path().empty() ? "." : log.parent_path(), dir,
                                    error))
      return log.filename().string();
  }
  return {};
}

// Only plain files can be a run's own: what it writes are no links and no folders.
Content list(const std::filesystem::path& dir) {
  Content content;
  std::error_code error;
  std::filesystem::directory_iterator file(dir, error);
  if (error) throw_file_error("list", dir, error.value());
  const std::string log = own_log(dir);
  for (; file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    const bool plain = file->symlink_status(error).type() == std::filesystem::file_type::regular;
    if (plain && name == kLockFile) continue;
    if (plain && is_own_temporary(name))
      content.temporary.push_back(file->path());
    else if (plain && (name == log || (is_own_name(name) &&
                                       (name != kFlagsFile || is_own_flags_file(file->path())))))
      content.own.push_back(file->path());
    else if (is_own_best(file->path()))
      content.best = true;
    else if (!plain || !is_trace_file(file->path()))  // a run's timeline may stay, and be replaced
      content.foreign.push_back(file->path());
  }
  if (error) throw_file_error("list", dir, error.value());
  std::sort(content.foreign.begin(), content.foreign.end());
  return content;
}

void make_folder(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) throw_file_error("make the folder", dir, error.value());
  if (!std::filesystem::is_directory(dir, error))
    throw Error("cannot use " + dir.string() + ": it is a file; name a folder");
}

// Checkpoints alone tell no training run from another program's, a parameter server's or an
// imported model: flags.txt does, which a run writes before its first one.
void refuse_unclaimed(const std::filesystem::path& dir) {
  if (is_own_flags_file(dir / kFlagsFile)) return;
  for (const std::filesystem::path& file : list(dir).own)
    if (const std::string name = file.filename().string(); is_checkpoint_name(name))
      throw Error(dir.string() + " holds " + name +
                  ", but no flags.txt that tells it from another " +
                  "program's, so nothing was touched; use --overwrite to delete the checkpoints " +
                  "there, --resume to go on from the latest, or another folder");
}

// By identity, so that no spelling, link or mount gets around it.
bool is_same_folder(const std::filesystem::path& a, const char* b) {
  std::error_code error;
  return b != nullptr && *b != '\0' && std::filesystem::equivalent(a, b, error) && !error;
}

void refuse_protected(const std::filesystem::path& dir) {
  if (dir.empty()) throw Error("the name of the folder to write to is empty; name a folder");
  const passwd* user = ::getpwuid(::geteuid());
  const bool home = is_same_folder(dir, std::getenv("HOME")) ||
                    (user != nullptr && is_same_folder(dir, user->pw_dir));
  if (home || is_same_folder(dir, "/"))
    throw Error("refused to use " + dir.string() + " itself, which is " +
                (home ? "your home folder" : "the root folder") + "; name a folder inside it");
}

void refuse_foreign(const std::filesystem::path& dir,
                    const std::vector<std::filesystem::path>& foreign) {
  if (foreign.empty()) return;
  const std::string others =
      foreign.size() == 1 ? "" : " and " + std::to_string(foreign.size() - 1) + " more";
  throw Error(
      dir.string() + " holds " + foreign.front().filename().string() + others +
      ", not written by a training run, so nothing was touched; use --overwrite to delete a "
      "former run's own files beside it, --resume to go on from its checkpoint, or another "
      "folder");
}

[[noreturn]] void throw_in_use(const std::filesystem::path& dir) {
  std::string holder = "unknown";
  std::ifstream(dir / kLockFile) >> holder;
  throw Error(dir.string() + " is in use by a running training (pid " + holder +
              "); wait for it, end it, or use another folder");
}

// In a sticky folder (as /tmp is) only its owner and a file's own may replace or delete the file.
void refuse_others_files(const std::filesystem::path& dir) {
  const uid_t user = ::geteuid();
  struct stat folder {};
  if (user == 0 || ::stat(dir.c_str(), &folder) != 0 || (folder.st_mode & S_ISVTX) == 0 ||
      folder.st_uid == user)
    return;
  Content content = list(dir);
  content.own.insert(content.own.end(), content.temporary.begin(), content.temporary.end());
  for (const std::filesystem::path& path : content.own) {
    struct stat file {};
    if (::lstat(path.c_str(), &file) == 0 && file.st_uid != user)
      throw Error(path.string() + " belongs to another user (uid " + std::to_string(file.st_uid) +
                  "), and " + dir.string() + " is a sticky folder, where this run could neither " +
                  "replace nor delete it; use another folder");
  }
}

void remove(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) throw_file_error("delete", file, error.value());
  }
}

// Of a checkpoint the index comes last and goes first, so a process that was killed in between left
// data that nobody can read.
std::vector<std::filesystem::path> data_without_index(
    const std::vector<std::filesystem::path>& own) {
  std::vector<std::filesystem::path> data;
  for (const std::filesystem::path& file : own) {
    const std::string name = file.filename().string();
    const std::size_t mark = name.find(".data-");
    if (mark == std::string::npos || !is_checkpoint_name(name)) continue;
    std::error_code error;
    if (!std::filesystem::exists(file.parent_path() / (name.substr(0, mark) + ".index"), error) &&
        !error)
      data.push_back(file);
  }
  return data;
}

// "model.ckpt-1000"; empty where no state file says so.
std::string latest_name(const std::filesystem::path& dir) {
  try {
    return read_checkpoint_state(dir).latest.filename().string();
  } catch (const Error&) {
    return {};  // damaged: it goes too
  }
}

// Killed at any moment of a deletion, the folder is one that a run can go on in: from the latest
// checkpoint as long as that is whole, from the start when it is not. flags.txt tells a run that
// the latest is its own once no file `checkpoint` does.
int deletion_rank(const std::filesystem::path& file, const std::string& latest) {
  const std::string name = file.filename().string();
  if (name == kFlagsFile) return 5;
  const bool index = name.ends_with(".index");
  if (!latest.empty() && name.starts_with(latest + ".")) return index ? 3 : 4;
  if (name == kStateFile) return 2;
  return index ? 0 : 1;
}

void remove_in_order(const std::filesystem::path& dir, std::vector<std::filesystem::path> files) {
  std::stable_sort(files.begin(), files.end(),
                   [latest = latest_name(dir)](const auto& a, const auto& b) {
                     return deletion_rank(a, latest) < deletion_rank(b, latest);
                   });
  remove(files);
}

std::string plural(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " file" : " files");
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& dir, Mode mode) : dir_(dir), mode_(mode) {
  refuse_protected(dir);
  make_folder(dir);
  if (mode == Mode::fresh) {
    refuse_foreign(dir, list(dir).foreign);
    refuse_unclaimed(dir);
  }
  lock_.emplace(dir / kLockFile, [&] { throw_in_use(dir); });
  lock_->write(std::to_string(::getpid()) + "\n");
  require_writable_folder(dir);
  refuse_others_files(dir);
}

void RunFolder::clear() {
  Content content = list(dir_);
  remove(content.temporary);
  if (content.best) clear_best();
  if (mode_ == Mode::resume) remove(data_without_index(content.own));
  if (mode_ == Mode::resume || content.own.empty()) return;
  remove_in_order(dir_, content.own);
  notice_ = "deleted " + plural(content.own.size()) + " of a former run in " + dir_.string();
}

// As the folder around it: whole, or, when resuming, what is half there.
void RunFolder::clear_best() {
  const std::filesystem::path best = dir_ / kBestFolder;
  std::vector<std::filesystem::path> files, temporary;
  for (const auto& file : std::filesystem::directory_iterator(best)) {
    const bool half = !final_name_of_temporary(file.path().filename().string()).empty();
    (half ? temporary : files).push_back(file.path());
  }
  remove(temporary);
  if (files.empty() && temporary.empty()) return;  // it may be anybody's
  if (mode_ == Mode::resume) {
    remove(data_without_index(files));
  } else {
    remove_in_order(best, files);
    remove({best});
  }
}

bool RunFolder::owns(const std::filesystem::path& file) const {
  const std::vector<std::filesystem::path> own = list(dir_).own;
  return std::any_of(own.begin(), own.end(), [&](const std::filesystem::path& each) {
    std::error_code error;
    return std::filesystem::equivalent(each, file, error);
  });
}

std::string file_of(const std::string& name, const std::filesystem::path& train_dir) {
  if (!name.starts_with(kInTrainDir)) return name;
  return (train_dir / name.substr(kInTrainDir.size())).string();
}

std::string name_of(const std::string& file, const std::filesystem::path& train_dir) {
  if (file.empty()) return file;
  const std::filesystem::path below = path_below(train_dir, file);
  return below.empty() ? std::filesystem::absolute(file).lexically_normal().string()
                       : std::string(kInTrainDir) + below.string();
}

std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> prefixes;
  for (const std::filesystem::path& file : list(dir).own)
    if (file.extension() == ".index") prefixes.push_back(file.parent_path() / file.stem());
  std::sort(prefixes.begin(), prefixes.end(),
            [](const auto& a, const auto& b) { return step_in_name(a) < step_in_name(b); });
  return prefixes;
}

bool is_in_use(const std::filesystem::path& dir) {
  return is_locked(dir / kLockFile);
}

std::uint64_t free_bytes(const std::filesystem::path& dir) {
  std::filesystem::path existing = std::filesystem::absolute(dir);
  std::error_code error;
  while (!std::filesystem::exists(existing, error) && existing.has_relative_path())
    existing = existing.parent_path();
  struct statvfs status {};
  if (::statvfs(existing.c_str(), &status) != 0)
    throw_file_error("find the space of", existing, errno);
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

void require_writable_folder(const std::filesystem::path& dir) {
  make_folder(dir);
  const std::filesystem::path probe = temporary_name(dir / kLockFile);
  const FileDescriptor file(
      ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0) throw_file_error("write in", dir, errno);
  ::unlink(probe.c_str());
}

void write_file_atomically(const std::filesystem::path& path, const std::string& content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace towers::data
