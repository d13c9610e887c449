#include "tests/data/failing_calls.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace towers::test {
namespace {

// Writers have threads of their own.
std::atomic<int> calls_left{-1};
std::atomic<int> chosen_error{0};
std::atomic<Failure> chosen_failure{Failure::error};

// Whether this call is the chosen one.
bool is_chosen() {
  if (calls_left < 0) return false;
  return calls_left-- == 0;
}

// Whether this call must fail now.
bool must_fail() {
  if (!is_chosen()) return false;
  if (chosen_failure == Failure::kill) ::_exit(9);
  errno = chosen_error;
  return true;
}

}  // namespace

void fail_call(int n, Failure failure, int error) {
  chosen_failure = failure;
  chosen_error = error;
  calls_left = n;
}

bool call_failed() {
  return calls_left.exchange(-1) < 0;
}

}  // namespace towers::test

extern "C" {

ssize_t __real_write(int fd, const void* data, size_t size);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_rename(const char* from, const char* to);

ssize_t __wrap_write(int fd, const void* data, size_t size) {
  using namespace towers::test;
  if (chosen_failure != Failure::error && calls_left == 0 && size > 1) {
    const ssize_t half = __real_write(fd, data, size / 2);
    if (chosen_failure == Failure::kill) ::_exit(9);
    chosen_failure = Failure::error;  // of the next call
    return half;
  }
  return must_fail() ? -1 : __real_write(fd, data, size);
}
int __wrap_fsync(int fd) {
  return towers::test::must_fail() ? -1 : __real_fsync(fd);
}
int __wrap_fdatasync(int fd) {
  return towers::test::must_fail() ? -1 : __real_fdatasync(fd);
}
int __wrap_rename(const char* from, const char* to) {
  return towers::test::must_fail() ? -1 : __real_rename(from, to);
}
}
