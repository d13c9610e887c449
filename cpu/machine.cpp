#include "cpu/machine.h"

#include <algorithm>

#include "core/error.h"
#include "cpu/available_threads.h"

namespace towers::cpu {
namespace {

// Threads of each device: as even as can be, at least one each.
std::vector<int> share_out(const Options& options) {
  if (options.devices < 1) throw UsageError("--cpu_devices must be at least 1");
  if (options.threads < 0) throw UsageError("--compute_threads must not be negative");
  const int threads = options.threads == 0 ? available_threads() : options.threads;
  std::vector<int> shares;
  for (int d = 0; d < options.devices; ++d)
    shares.push_back(
        std::max(1, threads * (d + 1) / options.devices - threads * d / options.devices));
  return shares;
}

}  // namespace

Machine::Machine(const Options& options) : kernels_(find_target(options.simd)) {
  const std::vector<int> shares = share_out(options);
  for (const int share : shares) threads_ += share;
  std::vector<int> processors;
  if (options.pin_threads) processors = processors_for(threads_, options.first_processor);
  std::span<const int> left = processors;
  for (const int count : shares) {
    const std::size_t share = left.empty() ? 0 : static_cast<std::size_t>(count);
    pools_.push_back(std::make_unique<ThreadPool>(count, "/cpu:" + std::to_string(pools_.size()),
                                                  left.first(share)));
    left = left.subspan(share);
  }
  shares_.resize(pools_.size());
}

}  // namespace towers::cpu
