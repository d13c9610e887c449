#include "app/ranks.h"

#include <unistd.h>

#include <algorithm>

#include "app/failure.h"
#include "cli/console.h"
#include "cluster/launch.h"
#include "cluster/mpi_loader.h"
#include "core/agreement.h"
#include "core/error.h"

namespace towers::app {

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

Ranks::Ranks() {
  const auto launch = cluster::find_launch();
  if (!launch) return;
  thread_ = std::make_shared<CommunicationThread>([&] { return cluster::join_ranks(*launch); });
  if (thread_->ranks() == 1) {
    thread_.reset();
    return;
  }
  if (!leads()) cli::set_log_level("off", true);
}

// While MPI still holds the others back: as soon as one of them has ended, the launcher ends all.
void Ranks::fail() {
  try {
    tell();
  } catch (...) {
    const Failure failure = current_failure();
    cli::log_error(failure.text);
    throw SaidFailure(failure.exit_code);
  }
}

void Ranks::tell() {
  const Failure failure = current_failure();
  const RankFailure told{failure.exit_code, failure.text,
                         "rank " + std::to_string(rank()) + " on " + host_name()};
  if (thread_->awaited_elsewhere()) {
    thread_->wait();  // throws where another rank has failed before
    cli::set_log_level("error", false);
    cli::log_error(told.where + ": " + told.text);
    thread_->abort(failure.exit_code);
  }
  thread_->run([&](Collective& collective) { towers::agree(collective, 0, &told); });
  throw Error(failure.text);  // not reached: the agreement throws
}

void Ranks::agree() {
  together([](Collective& /*collective*/) {});
}

std::vector<std::string> Ranks::gather(const std::string& mine) {
  std::vector<std::string> texts{mine};
  together([&](Collective& collective) { texts = gather_texts(collective, mine); });
  return texts;
}

std::string Ranks::leaders(const std::string& mine) {
  std::string text = mine;
  std::size_t size = text.size();
  take_leaders(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  take_leaders(std::as_writable_bytes(std::span(text)));
  return text;
}

void Ranks::take_leaders(std::span<std::byte> data) {
  together([data](Collective& collective) { collective.broadcast(data, 0); });
}

void Ranks::together(const CommunicationThread::Job& job) {
  if (alone()) return;
  thread_->run([&job](Collective& collective) {
    towers::agree(collective, 0);
    job(collective);
  });
}

void Ranks::begin_step(int stop) {
  if (alone()) return;
  thread_->set_awaited_elsewhere(true);
  thread_->post([this, stop](Collective& collective) { stops_ = towers::agree(collective, stop); });
}

int Ranks::end_step(int stop) {
  if (alone()) return stop;
  thread_->wait();
  thread_->set_awaited_elsewhere(false);
  const auto first =
      std::find_if(stops_.begin(), stops_.end(), [](std::int32_t reason) { return reason != 0; });
  return first == stops_.end() ? 0 : *first;
}

int Ranks::finish(int stop) {
  begin_step(stop);
  return end_step(stop);
}

}  // namespace towers::app
