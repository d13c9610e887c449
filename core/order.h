#pragma once
// The order of the training examples: one endless stream, each epoch a permutation drawn from
// (seed, epoch), one after the other. Position p of the stream is example p % n of epoch p / n.

#include <cstdint>
#include <vector>

namespace towers {

// Permutation of 0 .. size - 1 (Fisher and Yates's shuffle on a Philox stream).
std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                             std::uint32_t size);

}  // namespace towers
