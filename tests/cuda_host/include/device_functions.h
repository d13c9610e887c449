#pragma once
// How the threads of a block that runs on the host find each other (block.cpp).

#include <cstdint>

namespace towers::cuda_host {

// All threads of the block wait for each other, at barriers in the same line of source.
void block_barrier(int line);
// The same, and tells how many of them said yes.
int block_count(bool yes, int line);

// Threads of the warp that `mask` names wait for each other and show each other a word. The result
// has a word for each lane and stands until the caller's next exchange; lanes that do not take part
// show rubbish.
const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t word);
int this_lane();

}  // namespace towers::cuda_host
