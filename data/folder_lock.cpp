#include "data/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

namespace towers::data {
namespace {

// The former holder removes the file, so a lock counts only if the name still leads to it.
bool is_named(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// False: the file system knows no locks.
bool lock(const FileDescriptor& file, const std::filesystem::path& path,
          const std::function<void()>& on_wait) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return false;
  if (errno != EWOULDBLOCK) throw_file_error("lock", path, errno);
  on_wait();
  while (::flock(file.get(), LOCK_EX) != 0)
    if (errno != EINTR) throw_file_error("lock", path, errno);
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
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FolderLock::~FolderLock() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);  // while the lock is held: see is_named
}

}  // namespace towers::data
