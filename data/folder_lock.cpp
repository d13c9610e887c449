#include "data/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <thread>

namespace towers::data {
namespace {

// The former holder removes the file, so a lock counts only if the name still leads to it.
bool is_named(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Whether another process holds the exclusive lock. flock knows no question but an attempt, so this
// shares the lock for a moment: those who ask do not see each other, and a holder-to-be who finds
// them in its way asks the same.
bool is_held(const FileDescriptor& file) {
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(file.get(), LOCK_UN);
  return false;
}

// False: the file system knows no locks.
bool lock(const FileDescriptor& file, const std::filesystem::path& path,
          const std::function<void()>& on_wait) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return false;
    if (errno != EWOULDBLOCK && errno != EINTR) throw_file_error("lock", path, errno);
    if (!is_held(file)) {
      std::this_thread::yield();
      continue;
    }
    on_wait();
    while (::flock(file.get(), LOCK_EX) != 0)
      if (errno != EINTR) throw_file_error("lock", path, errno);
    return true;
  }
  return true;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& path, const std::function<void()>& on_wait)
    : path_(path) {
  bool waited = false;
  const auto wait_once = [&] {
    if (!waited && on_wait) on_wait();
    waited = true;
  };
  do {
    file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (file_.get() < 0) throw_file_error("write", path, errno);
    held_ = lock(file_, path, wait_once);
  } while (held_ && !is_named(file_, path));
}

void FolderLock::write(std::string_view text) {
  if (::ftruncate(file_.get(), 0) != 0) throw_file_error("write", path_, errno);
  write_all(file_, path_, std::as_bytes(std::span(text)));
}

bool is_locked(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.get() >= 0 && is_held(file);
}

FolderLock::~FolderLock() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);  // while the lock is held: see is_named
}

}  // namespace towers::data
