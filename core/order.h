#pragma once
// The order of the training examples: one endless stream, each epoch a permutation drawn from
// (seed, epoch), one after the other. Position p of the stream is example p % n of epoch p / n.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace towers {

// Permutation of 0 .. size - 1 (Fisher and Yates's shuffle on a Philox stream).
std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                             std::uint32_t size);

// The permutations of the epochs being read: drawn by the first that needs one, shared by all
// threads.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

  EpochOrders(std::uint64_t seed, std::uint32_t size) : seed_(seed), size_(size) {}

  Order get(std::uint64_t epoch);

 private:
  // Batches in flight lie in two neighbouring epochs, in more only where they hold more than an
  // epoch together; an order that has been dropped is drawn again.
  static constexpr std::size_t kKept = 4;

  const std::uint64_t seed_;
  const std::uint32_t size_;
  std::mutex mutex_;
  std::deque<std::pair<std::uint64_t, Order>> recent_;
};

}  // namespace towers
