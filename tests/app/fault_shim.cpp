// Preloaded into the towers binary (LD_PRELOAD): calls that change files fail, wait, or are the
// process's last; and a wall clock that is wrong. Told by the environment:
//
//   TOWERS_FAULT_DIR    calls on paths below this folder count, from 0
//   TOWERS_FAULT_AT     number of the first one that fails; none where it is not set
//   TOWERS_FAULT_TIMES  how many fail (1)
//   TOWERS_FAULT        an errno, "kill", or "wait SECONDS" (then the call goes on as usual)
//   TOWERS_FAULT_LOG    file that gets a line for each call that counts: number, name, path
//   TOWERS_CLOCK        seconds since 1970 at which the wall clock stands still

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

const char* setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void log(int number, const char* call, const char* path) {
  const char* file = setting("TOWERS_FAULT_LOG");
  if (*file == '\0') return;
  char line[PATH_MAX + 64];
  const int size = std::snprintf(line, sizeof line, "%d %s %s\n", number, call, path);
  const long fd = ::syscall(SYS_open, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ::syscall(SYS_write, fd, line, size);
  ::syscall(SYS_close, fd);
}

// Whether this call on `path` must fail, with errno set.
bool must_fail(const char* call, const char* path) {
  static std::atomic<int> calls{0};
  const char* dir = setting("TOWERS_FAULT_DIR");
  if (*dir == '\0' || std::strncmp(path, dir, std::strlen(dir)) != 0) return false;
  const int number = calls++;
  log(number, call, path);
  const char* at = setting("TOWERS_FAULT_AT");
  if (*at == '\0' || number < std::atoi(at)) return false;
  const char* times = setting("TOWERS_FAULT_TIMES");
  if (number - std::atoi(at) >= (*times == '\0' ? 1 : std::atoi(times))) return false;
  const char* fault = setting("TOWERS_FAULT");
  if (std::strcmp(fault, "kill") == 0) ::kill(::getpid(), SIGKILL);
  if (std::strncmp(fault, "wait ", 5) == 0) {
    ::sleep(static_cast<unsigned>(std::atoi(fault + 5)));
    return false;
  }
  errno = std::atoi(fault);
  return true;
}

bool must_fail(const char* call, int fd) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return must_fail(call, path);
}

}  // namespace

extern "C" {

// NOLINTBEGIN: the names and types are the system's.
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  if ((flags & O_ACCMODE) != O_RDONLY && must_fail("open", path)) return -1;
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  if (must_fail("write", fd)) return -1;
  return next<ssize_t(int, const void*, size_t)>("write")(fd, data, size);
}

int fsync(int fd) {
  if (must_fail("fsync", fd)) return -1;
  return next<int(int)>("fsync")(fd);
}

int fdatasync(int fd) {
  if (must_fail("fdatasync", fd)) return -1;
  return next<int(int)>("fdatasync")(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  if (must_fail("ftruncate", fd)) return -1;
  return next<int(int, off_t)>("ftruncate")(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  if (must_fail("rename", to)) return -1;
  return next<int(const char*, const char*)>("rename")(from, to);
}

int remove(const char* path) noexcept {
  if (must_fail("remove", path)) return -1;
  return next<int(const char*)>("remove")(path);
}

int unlink(const char* path) noexcept {
  if (must_fail("unlink", path)) return -1;
  return next<int(const char*)>("unlink")(path);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = next<int(clockid_t, timespec*)>("clock_gettime")(clock, time);
  const char* seconds = setting("TOWERS_CLOCK");
  if (clock == CLOCK_REALTIME && *seconds != '\0') *time = {std::atol(seconds), 0};
  return result;
}
// NOLINTEND
}
