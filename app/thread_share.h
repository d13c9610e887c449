#pragma once
// Which threads and processors a process takes where several of one run have the same ones.

#include <vector>

namespace towers::app {

struct ThreadShare {
  int threads = 0;  // of this process
  int first = 0;    // of its threads, counted over all these processes: where pinning begins
  int total = 0;    // threads of all these processes
};

// given: --compute_threads of each of the processes (0: left to us), in the order in which they
// take their parts; `me` is this one's place. Those to whom it is left take an equal part of
// `available`, at least 1.
ThreadShare share_of(const std::vector<int>& given, std::size_t me, int available);

}  // namespace towers::app
