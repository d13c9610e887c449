#pragma once
// The mean of the gradients of the towers of all ranks, made while the towers still compute.
//
// Each bucket of the flat layout is cut into as many sections as there are ranks. Every rank sends
// its towers' gradients of a section to the section's owner, which has the towers summed in order,
// by the arithmetic of one process, and sends the means to all. For one tower a rank that moves as
// many bytes as a ring's all-reduce, and the sums do not depend on the library's algorithm or on
// how towers are spread over ranks.

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/communication_thread.h"

namespace towers::cpu {

class GradientExchange {
 public:
  // The means over the towers of all ranks of `size` bytes of values each; those of tower t lie at
  // towers + t * size. Called on the communication thread.
  using Mean = std::function<void(const std::byte* towers, std::size_t size, std::byte* out)>;

  struct Buffers {
    std::vector<std::span<std::byte>> gradients;  // of each of this rank's towers, equally long
    std::span<std::byte> mean;
    // Where the bucket begins that is ready first: the backward pass goes from the layout's end to
    // its start. A multiple of kAlignment.
    std::size_t first_bucket = 0;
  };
  // Sections start at such bytes: at vectors' and cache lines' borders.
  static constexpr std::size_t kAlignment = 64;

  // Every rank has as many towers, and buffers as long. They must outlive this.
  GradientExchange(std::shared_ptr<CommunicationThread> ranks, Buffers buffers, Mean mean);
  ~GradientExchange();

  std::size_t towers() const { return losses_.size(); }              // of all ranks
  std::size_t first_tower() const { return towers_here() * rank_; }  // of this rank

  // Of a step, by any thread: that a tower's gradients are ready, in the first bucket (with its
  // loss) and then in all of it. `tower` counts from this rank's first.
  void first_ready(std::size_t tower, double loss);
  void all_ready();
  // Until `mean` holds the means and losses() every tower's loss. Throws Error where a rank failed.
  void finish();
  const std::vector<double>& losses() const { return losses_; }

  // The smallest of every rank's number.
  int smallest(int mine);

 private:
  struct Bucket {
    std::vector<Collective::Part> sections;  // of each rank, in the layout
    std::atomic<std::size_t> ready{0};       // towers
  };

  std::size_t towers_here() const { return buffers_.gradients.size(); }
  void cut(Bucket& bucket, std::size_t begin, std::size_t end) const;
  void one_more(Bucket& bucket);
  void exchange(Collective& collective, const Bucket& bucket);
  void gather_losses(Collective& collective);

  std::shared_ptr<CommunicationThread> ranks_;
  std::size_t rank_, count_;
  Buffers buffers_;
  Mean mean_;
  std::array<Bucket, 2> buckets_;
  std::vector<double> losses_;
  std::vector<std::byte> received_;  // [tower][section]
  std::vector<Collective::Part> parts_;
};

}  // namespace towers::cpu
