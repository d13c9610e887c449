#include "core/order.h"

#include <numeric>
#include <utility>

#include "core/philox.h"

namespace towers {
namespace {

// The words of one Philox stream, one after the other.
class Words {
 public:
  Words(std::uint64_t seed, std::uint64_t epoch) : seed_(seed), epoch_(epoch) {}

  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(seed_, Stream::order, epoch_, blocks_++);
      used_ = 0;
    }
    return block_.word[used_++];
  }

  // Uniform in [0, bound), without bias: Lemire, "Fast Random Integer Generation in an Interval"
  // (ACM TOMACS 29, 2019), algorithm 5.
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{next()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t threshold = (0u - bound) % bound;
      while (static_cast<std::uint32_t>(product) < threshold)
        product = std::uint64_t{next()} * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint64_t seed_, epoch_;
  std::uint32_t blocks_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace

std::vector<std::uint32_t> epoch_permutation(std::uint64_t seed, std::uint64_t epoch,
                                             std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  Words words(seed, epoch);
  // std::shuffle's draws are left to the library; these are the same everywhere.
  for (std::uint32_t i = size; i > 1; --i) std::swap(order[i - 1], order[words.below(i)]);
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
