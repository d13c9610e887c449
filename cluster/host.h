#pragma once
// What the sessions of one server share: its variables, its members, and the lock over both.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cluster/parameters.h"
#include "cluster/server.h"

namespace towers::cluster {

// Flags and model of a task, by name ("--learning_rate"): what all must agree on.
using Settings = std::map<std::string, std::string>;

// "--x differs: ..." for the model, or the first setting that differs; empty: none.
std::string first_difference(const Settings& ours, const std::string& our_name,
                             const Settings& theirs);

struct Host {
  Host(const ServerOptions& options, const Hooks& hooks);

  double now() const;  // seconds since the start
  std::string name() const { return ps_name(options.cluster, options.index); }
  std::string name_of(int worker) const { return worker_name(options.cluster, worker); }
  // All below: with `mutex` held.
  void members_changed();  // after every join, goodbye and loss
  void notice_losses();
  void heard(int worker, std::uint64_t process);
  void leave(int worker, std::uint64_t process);
  // Of a server that is kept, when a training is over: nothing of it is left for the next.
  void begin_anew();
  bool has_begun() const { return begun || parameters.step() > parameters.start().step; }
  // "worker 1 (host:port) has not come yet": those whose gradients an update waits for.
  std::string waited_for(bool& absent) const;

  const ServerOptions options;
  const Hooks hooks;
  std::mutex mutex;
  std::condition_variable changed;  // an update, a session, the end
  Parameters parameters;
  Membership members;
  Settings agreed;         // the chief's; empty before it came
  std::uint64_t size = 0;  // values of the shard, as the chief said
  std::string failure;     // why the training is over for everybody
  bool begun = false;      // updates were made before the variables were last put in place
  bool closing = false;
};

}  // namespace towers::cluster
