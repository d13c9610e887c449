#pragma once
// Which threads and processors a process takes where several of one run have the same ones.

#include <vector>

namespace towers::app {

struct ThreadWish {
  int threads = 0;  // --compute_threads; 0: left to us
  int devices = 1;  // --cpu_devices, each of which takes a thread at least
};

struct ThreadShare {
  int threads = 0;  // of this process
  int first = 0;    // of its threads, counted over all these processes: where pinning begins
  int total = 0;    // threads of all these processes
};

// wishes: of each of the processes, in the order in which they take their parts; `me` is this one's
// place. Those that leave it to us take an equal part of `available`.
ThreadShare share_of(const std::vector<ThreadWish>& wishes, std::size_t me, int available);

}  // namespace towers::app
