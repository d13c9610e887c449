#pragma once
// Whose folder is it? What a run may delete, what it must not touch, and one run at a time.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/folder_lock.h"

namespace towers::data {

// How a run's flags.txt begins: one without it is somebody's own.
inline constexpr std::string_view kFlagsFileMark = "# The flags of this run.";

// In train_dir, a run's flags and place (app/run_state.h).
inline constexpr std::string_view kFlagsFile = "flags.txt";

// In train_dir, where --eval_every keeps the best checkpoint, and what tells its precision there.
inline constexpr std::string_view kBestFolder = "best";
inline constexpr std::string_view kPrecisionFile = "precision.txt";

// A file in train_dir is kept in flags.txt as "{train_dir}/NAME", so that it is found after the
// folder was moved, and so that another run with the same flags has a file of its own.
// file_of: `name` with {train_dir} put in. name_of: `file`, absolute, or from {train_dir} on where
// it lies below that folder; empty stays empty in both.
std::string file_of(const std::string& name, const std::filesystem::path& train_dir);
std::string name_of(const std::string& file, const std::filesystem::path& train_dir);

// Prefixes of the checkpoints model.ckpt-STEP that lie in `dir`, by step.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& dir);

// train_dir of one run, locked (file "lock", holding the pid) until destruction.
class RunFolder {
 public:
  enum class Mode { fresh, overwrite, resume };

  // Checks and locks, and deletes nothing: what fails between here and clear() loses nothing.
  // fresh: a foreign file is an Error that names it, --overwrite, --resume and another folder; so
  // are checkpoints where no flags.txt says that they are a training run's.
  // overwrite, resume: foreign files are welcome.
  // `/` and the home folder are always refused. A folder locked by a live run is an Error naming
  // its pid. A folder that can't be made or written is an Error with path and reason, and so is one
  // with a former run's file that this user may not replace (another's, in a sticky folder).
  RunFolder(const std::filesystem::path& dir, Mode mode);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // fresh, overwrite: deletes a former run's own files (event files, model.ckpt-*, checkpoint,
  // flags.txt, the metrics log that it names, temporary files of the same, and a folder `best` of
  // nothing but such files), nothing else.
  // resume: what a killed run left half made or half deleted, that is temporary files, and data of
  // checkpoints without an index.
  void clear();

  // Whether a file there is a former run's own.
  bool owns(const std::filesystem::path& file) const;

  const std::filesystem::path& path() const { return dir_; }
  // Prefixes of the checkpoints that lie there, by step.
  std::vector<std::filesystem::path> checkpoints() const { return checkpoints_in(dir_); }
  // One line for the log: "deleted 12 files of a former run in DIR"; empty when nothing was
  // deleted.
  const std::string& notice() const { return notice_; }

 private:
  void clear_best();

  std::filesystem::path dir_;
  Mode mode_;
  std::string notice_;
  std::optional<FolderLock> lock_;
};

// Whether a live run holds the lock of `dir`.
bool is_in_use(const std::filesystem::path& dir);

// Free bytes for this user on the file system of `dir` (or of its nearest existing parent).
std::uint64_t free_bytes(const std::filesystem::path& dir);

// Makes `dir` and tests that a file can be written in it; throws Error with path and reason.
void require_writable_folder(const std::filesystem::path& dir);

// Writes `content` to `path` by a temporary name, fsync and rename.
void write_file_atomically(const std::filesystem::path& path, const std::string& content);

}  // namespace towers::data
