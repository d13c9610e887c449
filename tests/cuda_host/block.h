#pragma once
// Runs a grid of blocks on this host thread: a block's threads are fibers that leave the processor
// only where they wait for each other, so that a kernel which never does costs a loop.

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>

namespace towers::cuda_host {

using Random = std::mt19937_64;

// Calls `thread` blocks * threads times, blocks in a random order, the threads of each from first
// to last or from last to first. Returns what went wrong (divergent barriers, an access that
// abandon_block reported), or "".
std::string run_grid(dim3 blocks, dim3 threads, const std::function<void()>& thread,
                     Random& random);

bool in_block();  // whether it is a thread of a block that runs now
// Ends the block from within one of its threads, also from a signal handler; does not return.
[[noreturn]] void abandon_block(std::string reason);

}  // namespace towers::cuda_host
