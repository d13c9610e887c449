#pragma once
// Which workers take part, as one server sees it. Every function is told the time (seconds, from
// any start); there is no clock in here. One caller at a time.

#include <cstdint>
#include <optional>
#include <vector>

namespace towers::cluster {

struct Patience {
  double worker_timeout = 10;    // seconds of silence after which a worker is lost
  double cluster_timeout = 300;  // seconds that one waits for somebody who is missing
};

enum class Presence {
  absent,   // has not come yet
  present,  // has been heard of within worker_timeout
  lost,     // gone without goodbye; it may come back
  left,     // said goodbye
};

class Membership {
 public:
  Membership(int workers, const Patience& patience, double now);

  // A process takes worker's part. process: a number of its own. False while another process has
  // that part.
  bool join(int worker, std::uint64_t process, double now);
  // A process may have several connections for a moment. When the last one has broken the worker
  // stays present until worker_timeout, and another process may join.
  void connected(int worker, std::uint64_t process);
  void disconnected(int worker, std::uint64_t process);
  // A sign of life; of another process than the one that joined it says nothing. It brings a lost
  // worker back.
  void heard(int worker, std::uint64_t process, double now);
  // Also of a process that was started again and is told to end before it could join. False when
  // another one has that part.
  bool leave(int worker, std::uint64_t process, double now);

  // A server that takes the place of one which was lost does not know who was there. They have
  // worker_timeout to come back: those who have not come yet count as present until then.
  void expect_back(double now);
  // It is told to end, and first comes for the variables.
  void comes_once_more(int worker, std::uint64_t process);
  // Whether somebody who is there has said so.
  bool must_stay() const;

  // Those that are lost since the last call.
  std::vector<int> newly_lost(double now);

  Presence presence(int worker) const { return at(worker).presence; }
  // Whether `process` still has worker's part.
  bool is(int worker, std::uint64_t process) const {
    return at(worker).process == process && at(worker).presence == Presence::present;
  }
  // Workers that are there or are still to come.
  int expected() const;
  std::vector<int> with(Presence presence) const;

  // Whether the server's work is over, and how.
  struct End {
    bool clean = true;         // false: somebody was waited for in vain
    std::vector<int> missing;  // those, when not clean
  };
  std::optional<End> end(double now) const;

 private:
  struct Worker {
    Presence presence = Presence::absent;
    std::uint64_t process = 0;
    int connections = 0;
    double heard = 0;
    bool comes_once_more = false;
  };
  const Worker& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }

  Patience patience_;
  std::vector<Worker> workers_;
  double last_event_;  // of a join, a goodbye or a sign of life
};

}  // namespace towers::cluster
