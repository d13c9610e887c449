#include "cluster/membership.h"

#include <algorithm>

namespace towers::cluster {
namespace {

// After the last goodbye a server stays for a moment where all have come, so that a worker that
// restarts at once finds it, and longer where somebody who is late may still come. Both are below
// the 10 s that people are promised.
constexpr double kStayWhenAllCame = 0.5;
constexpr double kStayForLateOnes = 8;

}  // namespace

Membership::Membership(int workers, const Patience& patience, double now)
    : patience_(patience), workers_(static_cast<std::size_t>(workers)), last_event_(now) {}

bool Membership::join(int worker, std::uint64_t process, double now) {
  Worker& w = at(worker);
  const bool alive = w.presence == Presence::present && w.connections > 0 &&
                     now - w.heard < patience_.worker_timeout;
  if (w.process != process) {
    if (alive) return false;
    w = {.process = process};
  }
  w.presence = Presence::present;
  w.heard = now;
  last_event_ = now;
  return true;
}

void Membership::heard(int worker, std::uint64_t process, double now) {
  Worker& w = at(worker);
  if (w.process != process || w.presence == Presence::absent || w.presence == Presence::left)
    return;
  w.presence = Presence::present;
  w.heard = last_event_ = now;
}

void Membership::connected(int worker, std::uint64_t process) {
  if (at(worker).process == process) ++at(worker).connections;
}

void Membership::disconnected(int worker, std::uint64_t process) {
  if (at(worker).process == process) --at(worker).connections;
}

bool Membership::leave(int worker, std::uint64_t process, double now) {
  Worker& w = at(worker);
  if (w.presence == Presence::left || (w.process != process && w.connections > 0)) return false;
  w.presence = Presence::left;
  last_event_ = now;
  return true;
}

void Membership::expect_back(double now) {
  for (Worker& w : workers_)
    if (w.presence == Presence::absent) w = {.presence = Presence::present, .heard = now};
}

void Membership::comes_once_more(int worker, std::uint64_t process) {
  if (is(worker, process)) at(worker).comes_once_more = true;
}

bool Membership::must_stay() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) {
    return w.presence == Presence::present && w.comes_once_more;
  });
}

std::vector<int> Membership::newly_lost(double now) {
  std::vector<int> lost;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    Worker& w = at(worker);
    if (w.presence != Presence::present || now - w.heard < patience_.worker_timeout) continue;
    w.presence = Presence::lost;
    lost.push_back(worker);
  }
  return lost;
}

int Membership::expected() const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) {
    return w.presence == Presence::absent || w.presence == Presence::present;
  }));
}

std::vector<int> Membership::with(Presence presence) const {
  std::vector<int> found;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker)
    if (at(worker).presence == presence) found.push_back(worker);
  return found;
}

std::optional<Membership::End> Membership::end(double now) const {
  if (!with(Presence::present).empty()) return {};
  const double quiet = now - last_event_;
  std::vector<int> lost, late = with(Presence::absent);
  // One that was expected back and never came here may have said goodbye to the former server.
  for (int worker : with(Presence::lost)) (at(worker).process != 0 ? lost : late).push_back(worker);
  const bool nobody_came = late.size() == workers_.size();
  if (!lost.empty() || nobody_came)
    return quiet < patience_.cluster_timeout ? std::nullopt
                                             : std::optional(End{false, nobody_came ? late : lost});
  const double stay = late.empty() ? kStayWhenAllCame : kStayForLateOnes;
  return quiet < stay ? std::nullopt : std::optional(End{});
}

}  // namespace towers::cluster
