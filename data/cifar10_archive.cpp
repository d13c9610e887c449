#include "data/cifar10_archive.h"

#include <algorithm>
#include <cctype>

#include "data/archive_internal.h"
#include "data/batches_folder.h"
#include "data/download.h"
#include "data/extracted_set.h"
#include "data/folder_lock.h"
#include "data/part_file.h"
#include "data/progress_meter.h"
#include "data/run_folder.h"
#include "data/url.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

Expected expected_of(const ArchiveSpec& spec, const DownloadOptions& options) {
  std::string sha256 = options.sha256;
  std::transform(sha256.begin(), sha256.end(), sha256.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!sha256.empty() &&
      (sha256.size() != 64 || sha256.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw UsageError("--data_sha256=" + options.sha256 + ": a sha256 has 64 hexadecimal digits");
  if (sha256.empty() && options.url == spec.url) sha256 = spec.sha256;
  if (sha256 == spec.sha256) return {sha256, spec.md5, spec.bytes};
  return {sha256, {}, 0};
}

// Deletes what a killed process left; the lock says that no live one is at work.
void remove_stale_stages(const ArchiveSpec& spec, const fs::path& folder) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string final_name = final_name_of_temporary(entry->path().filename().string());
    for (const ArchiveMember& member : spec.members)
      if (final_name == member.name) stale.push_back(entry->path());
  }
  for (const fs::path& path : stale) fs::remove(path, error);
}

// Gets a set into data_dir that is not extracted there yet; the caller holds the lock.
class Obtaining {
 public:
  Obtaining(const ArchiveSpec& spec, const fs::path& data_dir, const DownloadOptions& options)
      : spec_(spec),
        options_(options),
        archive_(data_dir / spec.file),
        expected_(expected_of(spec, options)) {}

  // The members, extracted to temporary names in `folder`.
  StagedFiles stage(const fs::path& folder) {
    remove_stale_stages(spec_, folder);
    require_space(folder);
    if (is_file(archive_)) {
      StagedFiles members = stage_what_is_there(folder);
      if (!members.empty()) return members;
    }
    if (expected_.sha256.empty())
      warn("no --data_sha256 for " + without_credentials(options_.url) +
           ": the download's digest is not checked");
    download(spec_, archive_, expected_, options_);
    return stage_with_progress(folder);
  }

 private:
  void tell(const std::string& line) const {
    if (options_.message) options_.message(line);
  }
  void warn(const std::string& line) const {
    if (options_.warning) options_.warning(line);
  }

  StagedFiles stage_with_progress(const fs::path& folder) const {
    std::uint64_t total = 0;
    for (const ArchiveMember& member : spec_.members)
      if (member.required) total += member.bytes;
    ProgressMeter meter("Extracting", spec_.file, options_);
    meter.begin_quietly();
    return stage_members(spec_, archive_, folder,
                         [&](std::uint64_t done) { meter.update(std::min(done, total), total); });
  }

  bool may_fetch() const { return options_.allow_network || scheme_of(options_.url) == "file"; }

  // Rule 3 of the header. Empty: the archive is not to be used, another is to be fetched.
  StagedFiles stage_what_is_there(const fs::path& folder) {
    const std::string differs = difference(archive_, expected_);
    const bool digest_known = !expected_.sha256.empty();
    StagedFiles members;
    try {
      members = stage_with_progress(folder);
    } catch (const ArchiveError& error) {
      // With the right digest another copy would be the same.
      if (digest_known && differs.empty()) throw;
      if (!may_fetch())
        throw Error(std::string(error.what()) + "; the network may not be used (--nodownload): " +
                    "replace it by " + without_credentials(options_.url));
      const bool goes_on = error.cut && digest_known && set_aside();
      tell(std::string(error.what()) + (goes_on ? ": fetching the rest" : ": fetching another"));
      return {};
    }
    if (!differs.empty() && !options_.sha256.empty()) {
      if (!may_fetch())
        throw Error(
            archive_.string() + " " + differs +
            "; the network may not be used (--nodownload): replace it, or drop --data_sha256");
      tell(archive_.string() + " " + differs + ": fetching another");
      return {};
    }
    if (!differs.empty())
      warn(archive_.string() + " is not the official archive (it " + differs +
           "), but whole: using it");
    else if (!digest_known)
      warn("no --data_sha256: the digest of " + archive_.string() + " is not checked");
    return members;
  }

  // Makes a cut archive the start of the next transfer, unless a longer one is under way. Only
  // where a digest tells in the end whether the two halves belong together.
  bool set_aside() const {
    const std::uint64_t bytes = size_or_zero(archive_);
    const fs::path part = part_path(archive_);
    if (bytes <= size_or_zero(part)) return false;
    if (expected_.bytes > 0 && bytes >= expected_.bytes) return false;
    std::error_code error;
    fs::remove(part.string() + ".info", error);
    fs::rename(archive_, part, error);
    if (error) throw_file_error("create", part, error.value());
    return true;
  }

  // Better than a full disk after the whole transfer. Some network file systems say 0 of
  // everything.
  void require_space(const fs::path& folder) const {
    std::uint64_t needed = 0;
    for (const ArchiveMember& member : spec_.members) needed += member.bytes;
    if (!is_file(archive_))
      needed += expected_.bytes - std::min(expected_.bytes, size_or_zero(part_path(archive_)));
    const std::uint64_t free = free_bytes(folder);
    if (free > 0 && free < needed)
      throw Error(archive_.parent_path().string() + ": the set needs " + std::to_string(needed) +
                  " bytes and " + std::to_string(free) +
                  " are free: free some space there or use another --data_dir");
  }

  const ArchiveSpec& spec_;
  const DownloadOptions& options_;
  fs::path archive_;
  Expected expected_;
};

void require_fetchable(const ArchiveSpec& spec, const fs::path& data_dir,
                       const DownloadOptions& options) {
  const std::string scheme = scheme_of(options.url);
  if (scheme != "http" && scheme != "https" && scheme != "file")
    throw UsageError("--data_url=" + without_credentials(options.url) +
                     ": an address starts with https://, http:// or file://");
  if (!options.allow_network && scheme != "file")
    throw Error("no CIFAR-10 in " + data_dir.string() +
                " and the network may not be used (--nodownload): put " +
                without_credentials(options.url) + " at " + (data_dir / spec.file).string() +
                ", or use another --data_dir or --dataset=synthetic");
}

}  // namespace

void ensure_archive(const ArchiveSpec& spec, const fs::path& data_dir,
                    const DownloadOptions& options) {
  ExtractedSet set = find_set(spec, data_dir);
  if (set.problem.empty()) return;
  const fs::path archive = data_dir / spec.file;
  std::error_code error;
  if (!is_file(archive)) {
    if (fs::exists(archive, error))
      throw Error(archive.string() + " is not a file: move it away, or use another --data_dir");
    if (set.found)
      throw Error(set.problem + ": delete " + set.folder.string() +
                  " to have the set fetched anew, or use another --data_dir");
    refuse_misplaced_data(data_dir);
    require_fetchable(spec, data_dir, options);
  }
  fs::create_directories(data_dir, error);
  if (error) throw_file_error("create the folder", data_dir, error.value());
  const auto tell = [&](const std::string& line) {
    if (options.message) options.message(line);
  };
  const FolderLock lock(data_dir / (spec.file + ".lock"), [&] {
    tell("another process is getting the set to " + data_dir.string() + ": waiting");
  });
  if (!lock.held() && options.warning)
    options.warning("the file system of " + data_dir.string() +
                    " knows no locks: do not start another run there before this one has the set");
  set = find_set(spec, data_dir);  // another process may have been faster
  if (set.problem.empty()) return;
  if (set.found) tell(set.problem + ": extracting the set again");
  commit_members(Obtaining(spec, data_dir, options).stage(set.folder), set.folder);
}

void ensure_cifar10(const fs::path& data_dir, const DownloadOptions& options) {
  ensure_archive(cifar10_spec(), data_dir, options);
}

}  // namespace towers::data
