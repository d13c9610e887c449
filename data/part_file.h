#pragma once
// A transfer under way: NAME.part with the bytes that came so far, and NAME.part.info, which says
// what they are the start of, so that a later run may go on.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/file.h"

namespace towers::data {

// What the server said of the file whose start is in the part.
struct PartOrigin {
  std::string url;   // without credentials: the note is for anyone to read
  std::string etag;  // strong ones only: RFC 9110 allows no other in If-Range
  std::string last_modified;
  std::uint64_t total = 0;  // 0: not said

  bool has_validator() const { return !etag.empty() || !last_modified.empty(); }
};

class PartFile {
 public:
  // Opens or makes FINAL.part. Its bytes are kept only if they start as gzip does and either came
  // from `url`, with a validator that the server can be asked about, or a digest will check the
  // whole. Throws Error with path and reason.
  PartFile(const std::filesystem::path& final_path, const std::string& url, bool digest_known);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  const PartOrigin& origin() const { return origin_; }

  // Some of its bytes were there before this run, so that they may be of another file.
  bool inherited() const { return inherited_; }

  // A later run may go on from these bytes.
  bool resumable() const { return size_ > 0 && (digest_known_ || origin_.has_validator()); }

  void restart(const PartOrigin& origin);  // from byte 0
  void append(std::span<const std::byte> bytes);
  void discard();  // deletes it and its note
  // Syncs, renames to the final path and deletes the note.
  void put_in_place();

 private:
  void save_origin() const;

  std::filesystem::path final_path_, path_, info_path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  bool inherited_ = false;
  bool digest_known_;
  PartOrigin origin_;
};

// The paths of a part, for messages and for moving a half archive there.
std::filesystem::path part_path(const std::filesystem::path& final_path);

}  // namespace towers::data
