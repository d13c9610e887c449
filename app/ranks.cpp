#include "app/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "app/failure.h"
#include "cli/console.h"
#include "cluster/launch.h"
#include "cluster/mpi_loader.h"
#include "core/error.h"

namespace towers::app {
namespace {

// `count` equal parts of `size` bytes each.
std::vector<Collective::Part> equal_parts(int count, std::size_t size) {
  std::vector<Collective::Part> parts;
  for (std::size_t r = 0; r < static_cast<std::size_t>(count); ++r)
    parts.push_back({r * size, size});
  return parts;
}

// A text that crosses to other ranks; what is longer is cut.
using Line = std::array<char, 1024>;
Line to_line(const std::string& text) {
  Line line{};
  std::memcpy(line.data(), text.data(), std::min(text.size(), line.size() - 1));
  return line;
}

std::string behind_rank(int rank, const std::string& text) {
  return "rank " + std::to_string(rank) + " on " + host_name() + ": " + text;
}

}  // namespace

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
  statuses_.resize(static_cast<std::size_t>(count()));
  if (!leads()) cli::set_log_level("off", true);
}

void Ranks::agree(Collective& collective, Status mine, const std::string* text) {
  statuses_[static_cast<std::size_t>(rank())] = mine;
  collective.all_gather(reinterpret_cast<std::byte*>(statuses_.data()),
                        equal_parts(count(), sizeof(Status)));
  const auto failed = [](const Status& status) { return status.exit_code != 0; };
  const auto first = std::find_if(statuses_.begin(), statuses_.end(), failed);
  if (first == statuses_.end()) return;
  // What all have met is nobody's own.
  const bool everybody = std::all_of(statuses_.begin(), statuses_.end(), failed);
  Line line{};
  if (text != nullptr) line = to_line(everybody ? *text : behind_rank(rank(), *text));
  collective.broadcast(std::as_writable_bytes(std::span(line)),
                       static_cast<int>(first - statuses_.begin()));
  if (first->exit_code == 2) throw UsageError(line.data());
  throw Error(line.data());
}

void Ranks::fail() {
  const Failure failure = current_failure();
  if (in_step_) {
    // The others wait for this rank's gradients, unless one of them has failed before.
    thread_->wait();
    cli::set_log_level("error", false);
    cli::log_error(behind_rank(rank(), failure.text));
    thread_->abort(failure.exit_code);
  }
  thread_->run([&](Collective& collective) {
    agree(collective, {failure.exit_code, 0}, &failure.text);
  });
  throw Error(failure.text);  // not reached: the agreement throws
}

std::vector<std::string> Ranks::gather(const std::string& mine) {
  std::vector<Line> lines(static_cast<std::size_t>(count()));
  lines[static_cast<std::size_t>(rank())] = to_line(mine);
  if (!alone())
    thread_->run([&](Collective& collective) {
      agree(collective, {}, nullptr);
      collective.all_gather(reinterpret_cast<std::byte*>(lines.data()),
                            equal_parts(count(), sizeof(Line)));
    });
  std::vector<std::string> texts;
  for (const Line& line : lines) texts.emplace_back(line.data());
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
  if (alone()) return;
  thread_->run([&](Collective& collective) {
    agree(collective, {}, nullptr);
    collective.broadcast(data, 0);
  });
}

void Ranks::begin_step(int stop) {
  if (alone()) return;
  in_step_ = true;
  thread_->post([this, stop](Collective& collective) { agree(collective, {0, stop}, nullptr); });
}

int Ranks::end_step(int stop) {
  if (alone()) return stop;
  thread_->wait();
  in_step_ = false;
  return agreed_stop();
}

int Ranks::finish(int stop) {
  begin_step(stop);
  return end_step(stop);
}

int Ranks::agreed_stop() const {
  const auto first = std::find_if(statuses_.begin(), statuses_.end(),
                                  [](const Status& status) { return status.stop != 0; });
  return first == statuses_.end() ? 0 : first->stop;
}

}  // namespace towers::app
