#pragma once
// Says who is missing: soon after the start of a wait, then every 10 s. It is told the time.

#include <optional>
#include <string>
#include <vector>

namespace towers::cluster {

// "10 s", "0.5 s"
std::string seconds_text(double seconds);

struct Missing {
  std::string who;    // "ps 0 (127.0.0.1:2222)"
  std::string cause;  // "Connection refused"
};

class Waiting {
 public:
  // self: who waits, "worker 1 (127.0.0.1:2224)".
  explicit Waiting(std::string self) : self_(std::move(self)) {}

  // The line to log now, or an empty one. Nobody missing ends the wait.
  std::string look(double now, const std::vector<Missing>& missing);
  double waited(double now) const { return since_ ? now - *since_ : 0; }

 private:
  std::string self_;
  std::optional<double> since_;
  double next_line_ = 0;
};

// "a, b, c": the first of many, and the number of the others, for a line that people read.
std::string list_of(const std::vector<std::string>& items, const char* between);
// "ps 0 (127.0.0.1:2222): Connection refused; ..."
std::string list_of(const std::vector<Missing>& missing);

}  // namespace towers::cluster
