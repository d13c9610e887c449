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
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

extern "C" void handle_signal(int signal) {
  const int earlier = g_received.load();
  if (earlier != 0 && signal != SIGUSR1) ::_exit(128 + signal);
  if (earlier == 0) g_received = signal;
}

}  // namespace

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

SignalGuard::SignalGuard() {
  g_received = 0;
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  for (int signal : kSignals) ::sigaction(signal, &action, nullptr);
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
  return signal == SIGINT || signal == SIGTERM ? 128 + signal : 0;
}

}  // namespace towers::app
