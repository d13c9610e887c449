#pragma once
// What data/cifar10_archive.h is made of, for any published archive: the tests use small ones.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/cifar10_archive.h"
#include "data/file.h"

namespace towers::data {

struct ArchiveMember {
  std::string name;         // inside ArchiveSpec::folder
  std::uint64_t bytes = 0;  // exactly, where required; else at most
  bool required = true;
};

struct ArchiveSpec {
  std::string file;    // its name in data_dir
  std::string folder;  // the one inside it that holds the members
  std::vector<ArchiveMember> members;
  std::string url, sha256, md5;  // where it is published, and its digests there
  std::uint64_t bytes = 0;
};

const ArchiveSpec& cifar10_spec();

// The archive's own content is at fault: another copy may be better. what() is "PATH: REASON".
class ArchiveError : public Error {
 public:
  ArchiveError(const std::filesystem::path& path, const std::string& reason, bool cut = false)
      : Error(path.string() + ": " + reason), reason(reason), cut(cut) {}
  std::string reason;
  bool cut;  // all there is of it is right, but it ends early
};

// Streams `archive` (tar, gzip or not) and writes its members alone to temporary files beside their
// places in `folder`, which is made; commit_members puts them there, once the whole archive has
// proved right. Other plain members and folders are skipped. An ArchiveError, which names the
// member: absolute paths, "..", links, devices, members twice and sizes beyond the expected; a cut,
// a wrong checksum, data behind the end, a missing member. Several gzip members in a row are read
// as one stream (RFC 1952). Throws Error when the disk is at fault. Uses about half a megabyte of
// memory.
using StagedFiles = std::vector<std::unique_ptr<AtomicFile>>;
// progress: told of the bytes written, where given.
StagedFiles stage_members(const ArchiveSpec& spec, const std::filesystem::path& archive,
                          const std::filesystem::path& folder,
                          const std::function<void(std::uint64_t bytes)>& progress = {});
void commit_members(StagedFiles members, const std::filesystem::path& folder);

// The same reading and the same ArchiveErrors, without writing anything.
void check_archive(const ArchiveSpec& spec, const std::filesystem::path& archive);

// ensure_cifar10 for any archive. The folder of the set is data_dir/spec.folder or data_dir itself.
void ensure_archive(const ArchiveSpec& spec, const std::filesystem::path& data_dir,
                    const DownloadOptions& options);

}  // namespace towers::data
