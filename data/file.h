#pragma once
// Files by descriptor: whole reads, checked writes, and files that appear whole or not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace towers::data {

// Owner of a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  int release();
  int close();  // 0, or the errno of close(2)

 private:
  int fd_;
};

// Error "cannot ACTION PATH: REASON" for errno value `error`, with what to do about it where the
// reason has an answer (no space, no permission, ...).
[[noreturn]] void throw_file_error(const std::string& action, const std::filesystem::path& path,
                                   int error);

// All of these throw Error with path and reason.
FileDescriptor open_to_read(const std::filesystem::path& path);
std::uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path);
// Fills `out` from byte `offset` on; the end of the file before that is an Error ("truncated").
void read_at(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t offset,
             std::span<std::byte> out);
std::string read_whole_file(const std::filesystem::path& path);
void write_all(const FileDescriptor& file, const std::filesystem::path& path,
               std::span<const std::byte> bytes);
// Makes renames and removals in `dir` last through a power cut.
void sync_folder(const std::filesystem::path& dir);

// `path` as seen from `folder`, by their names alone; empty where it does not lie below it.
std::filesystem::path path_below(const std::filesystem::path& folder,
                                 const std::filesystem::path& path);

// Name of the temporary file that becomes `path`, and its recognition when a process died before
// the rename: the final name, or an empty string when `name` is no such name.
std::filesystem::path temporary_name(const std::filesystem::path& path);
std::string final_name_of_temporary(const std::string& name);

// A file that is written beside its final name and takes that name by `commit`. Unless committed it
// leaves nothing behind. Errors carry the final path. When a commit fails in its very last part,
// the folder's sync, the new file is in place, whole.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void sync();    // to the disk, and closes: all errors of writing have come out after this
  void rename();  // to the final name; after sync()
  void commit();  // sync, rename, sync_folder
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once renamed
  FileDescriptor file_;
};

}  // namespace towers::data
