#include "cluster/host.h"

#include <chrono>

namespace towers::cluster {

std::string first_difference(const Settings& ours, const std::string& our_name,
                             const Settings& theirs) {
  const auto differs = [&](const std::string& name, const std::string& our_value,
                           const std::string& their_value) {
    return name + " differs: '" + their_value + "' here, '" + our_value + "' at " + our_name +
           "; all tasks need the same";
  };
  for (const auto& [name, value] : ours) {
    const auto found = theirs.find(name);
    const std::string their_value = found == theirs.end() ? std::string() : found->second;
    if (their_value != value) return differs(name, value, their_value);
  }
  for (const auto& [name, value] : theirs)
    if (!ours.contains(name)) return differs(name, "", value);
  return "";
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

std::string Host::waited_for(bool& absent) const {
  std::string text;
  absent = false;
  const auto add = [&](int worker, const char* what) {
    text += (text.empty() ? "" : ", ") + name_of(worker) + what;
  };
  for (int worker : members.with(Presence::absent)) {
    absent = true;
    add(worker, " has not come yet");
  }
  for (int worker : members.with(Presence::present))
    if (!parameters.is_pending(worker)) add(worker, " is at work");
  return text;
}

}  // namespace towers::cluster
