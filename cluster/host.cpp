#include "cluster/host.h"

#include <chrono>
#include <vector>

#include "cluster/waiting.h"

namespace towers::cluster {

namespace {

std::string value_in(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string() : found->second;
}

}  // namespace

std::string first_difference(const Settings& ours, const std::string& our_name,
                             const Settings& theirs) {
  const auto difference = [&](const std::string& name) -> std::string {
    const std::string our_value = value_in(ours, name), their_value = value_in(theirs, name);
    if (our_value == their_value) return "";
    return name + " differs: '" + their_value + "' here, '" + our_value + "' at " + our_name +
           "; all tasks need the same";
  };
  std::string first = difference("model");  // another one has other flags as well
  for (const Settings* settings : {&ours, &theirs})
    for (const auto& entry : *settings)
      if (first.empty()) first = difference(entry.first);
  return first;
}

Host::Host(const ServerOptions& o, const Hooks& h)
    : options(o),
      hooks(h),
      parameters(o.cluster.workers()),
      members(o.cluster.workers(), o.patience, now()) {}

double Host::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Host::members_changed() {
  parameters.set_expected(members.expected());
  changed.notify_all();
}

void Host::notice_losses() {
  for (int worker : members.newly_lost(now())) {
    const std::string lost = name_of(worker) + " is lost: not heard of for " +
                             std::to_string(static_cast<int>(options.patience.worker_timeout)) +
                             " s";
    parameters.forget(worker);
    members_changed();
    if (options.stop_on_lost_worker)
      failure = lost;
    else
      hooks.warning(name() + ": " + lost + "; going on with " + std::to_string(members.expected()) +
                    " of " + std::to_string(options.cluster.workers()) + "; it may come back");
  }
}

void Host::heard(int worker, std::uint64_t process) {
  const bool lost = members.presence(worker) == Presence::lost;
  members.heard(worker, process, now());
  if (!lost || members.presence(worker) == Presence::lost) return;
  hooks.info(name() + ": " + name_of(worker) + " is back");
  members_changed();
}

void Host::leave(int worker, std::uint64_t process) {
  if (!members.leave(worker, process, now())) return;
  hooks.info(name() + ": " + name_of(worker) + " has said goodbye");
  parameters.forget(worker);
  members_changed();
}

void Host::begin_anew() {
  parameters = Parameters(options.cluster.workers());
  members = Membership(options.cluster.workers(), options.patience, now());
  agreed.clear();
  size = 0;
  begun = false;
  members_changed();
}

std::string Host::waited_for(bool& absent) const {
  std::vector<std::string> all;
  absent = false;
  const auto add = [&](int worker, const char* what) { all.push_back(name_of(worker) + what); };
  for (int worker : members.with(Presence::absent)) {
    absent = true;
    add(worker, " has not come yet");
  }
  for (int worker : members.with(Presence::present))
    if (!parameters.is_pending(worker)) add(worker, " is at work");
  return list_of(all, ", ");
}

}  // namespace towers::cluster
