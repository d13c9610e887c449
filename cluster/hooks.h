#pragma once
// How a task of the cluster speaks to its process.

#include <functional>
#include <string>

namespace towers::cluster {

// May be called from any thread.
struct Hooks {
  std::function<void(const std::string&)> info, warning;
  std::function<bool()> stop;  // asked several times a second: end now
  // Of a worker that is told to end, but before that still comes for the variables. May be empty.
  std::function<bool()> comes_once_more = {};
};

}  // namespace towers::cluster
