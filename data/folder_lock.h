#pragma once
// One process at a time.

#include <filesystem>
#include <functional>
#include <string_view>

#include "data/file.h"

namespace towers::data {

// Holds an exclusive lock on the file `path` (made, and removed at the end) until destruction. The
// system drops the lock of a process that dies, so a file left behind stops nobody.
class FolderLock {
 public:
  // Waits as long as another process holds the lock; calls on_wait once before, which may throw
  // rather than wait. Throws Error with path and reason when the file cannot be made or locked.
  FolderLock(const std::filesystem::path& path, const std::function<void()>& on_wait);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // False on a file system that knows no locks (some of clusters): nobody is kept out.
  bool held() const { return held_; }

  // Replaces what the file says, for people and other processes to read.
  void write(std::string_view text);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  bool held_ = false;
};

// Whether a live process holds such a lock. Makes no file.
bool is_locked(const std::filesystem::path& path);

}  // namespace towers::data
