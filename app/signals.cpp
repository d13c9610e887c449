#include "app/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace towers::app {
namespace {

std::atomic<int> g_received{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// timeout(1) and schedulers signal the process and then its group: one request, told twice.
constexpr long long kOneRequest = 1'000'000'000;  // nanoseconds
std::atomic<long long> g_received_at{0};
static_assert(std::atomic<long long>::is_always_lock_free, "used in a signal handler");

long long monotonic_time() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

extern "C" void handle_signal(int signal) {
  const int earlier = g_received.load();
  if (signal == SIGUSR1) {
    if (earlier == 0) g_received = signal;
    return;
  }
  const long long now = monotonic_time();
  if (earlier != 0 && earlier != SIGUSR1) {
    if (now - g_received_at > kOneRequest) ::_exit(128 + signal);
    return;
  }
  g_received_at = now;
  g_received = signal;
}

// Nothing is under way that would have to be saved: files are written whole or not at all.
extern "C" void end_at_once(int signal) {
  ::_exit(128 + signal);
}

void take_over(int signal, void (*handler)(int)) {
  struct sigaction before {};
  ::sigaction(signal, nullptr, &before);
  if (signal == SIGHUP && before.sa_handler == SIG_IGN) return;  // nohup
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void prepare_signals() {
  ::signal(SIGXFSZ, SIG_IGN);
  take_over(SIGUSR1, handle_signal);
  // The system would end the process too, but not the first one of a container, where signals
  // without a handler do nothing.
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) take_over(signal, end_at_once);
}

SignalGuard::SignalGuard() {
  for (int signal : kSignals) take_over(signal, handle_signal);
}

SignalGuard::~SignalGuard() {
  for (int signal : kSignals) ::signal(signal, SIG_DFL);
}

int SignalGuard::received() {
  return g_received;
}

void SignalGuard::sleep_for(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  // In short naps: a signal may have been handled by another thread, whose arrival does not wake
  // us.
  while (received() == 0) {
    const std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    const timespec nap{0, static_cast<long>(std::min(left.count(), 0.1) * 1e9)};
    ::nanosleep(&nap, nullptr);
  }
}

int exit_code_of(int signal) {
  return signal == 0 || signal == SIGUSR1 ? 0 : 128 + signal;
}

}  // namespace towers::app
