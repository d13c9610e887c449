#include "core/order.h"

#include <numeric>
#include <utility>

#include "core/philox_words.h"

namespace towers {
namespace {

// Uniform in [0, bound), without bias: Lemire, "Fast Random Integer Generation in an Interval" (ACM
// TOMACS 29, 2019), algorithm 5.
std::uint32_t below(std::uint32_t bound, PhiloxWords& words) {
  std::uint64_t product = std::uint64_t{words.next()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t threshold = (0u - bound) % bound;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = std::uint64_t{words.next()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace

std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                             std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  PhiloxWords words(seed, Stream::order, epoch);
  // std::shuffle's draws are left to the library; these are the same everywhere.
  for (std::uint32_t i = size; i > 1; --i) std::swap(order[i - 1], order[below(i, words)]);
  return order;
}

EpochOrders::Order EpochOrders::get(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, order] : recent_)
    if (known == epoch) return order;
  if (recent_.size() == kKept) recent_.pop_front();
  return recent_
      .emplace_back(epoch, std::make_shared<const std::vector<std::uint32_t>>(
                               epoch_permutation(seed_, epoch, size_)))
      .second;
}

}  // namespace towers
