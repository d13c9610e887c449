#include "cpu/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "core/agreement.h"
#include "core/trace.h"
#include "cpu/denormals.h"

namespace towers::cpu {
GradientExchange::GradientExchange(std::shared_ptr<CommunicationThread> ranks, Buffers buffers,
                                   Mean mean)
    : ranks_(std::move(ranks)),
      rank_(static_cast<std::size_t>(ranks_->rank())),
      count_(static_cast<std::size_t>(ranks_->ranks())),
      buffers_(std::move(buffers)),
      mean_(std::move(mean)),
      losses_(towers_here() * count_),
      parts_(count_) {
  cut(buckets_[0], buffers_.first_bucket, buffers_.mean.size());
  cut(buckets_[1], 0, buffers_.first_bucket);
  std::size_t longest = 0;
  for (const Bucket& bucket : buckets_) longest = std::max(longest, bucket.sections[rank_].size);
  received_.resize(longest * losses_.size());
}

GradientExchange::~GradientExchange() {
  // What is under way writes into the buffers.
  try {
    ranks_->wait();
  } catch (...) {
    // Whoever asked for the gradients has heard of it.
  }
}

void GradientExchange::cut(Bucket& bucket, std::size_t begin, std::size_t end) const {
  const std::size_t lines = (end - begin + kAlignment - 1) / kAlignment;
  const auto border = [&](std::size_t rank) {
    return std::min(end, begin + lines * rank / count_ * kAlignment);
  };
  for (std::size_t r = 0; r < count_; ++r)
    bucket.sections.push_back({border(r), border(r + 1) - border(r)});
}

void GradientExchange::first_ready(std::size_t tower, double loss) {
  losses_[first_tower() + tower] = loss;
  one_more(buckets_[0]);
}

void GradientExchange::all_ready() {
  one_more(buckets_[1]);
}

void GradientExchange::one_more(Bucket& bucket) {
  if (++bucket.ready < towers_here()) return;
  bucket.ready = 0;
  ranks_->post([this, &bucket](Collective& collective) {
    const TraceSpan span("exchange", &bucket - buckets_.data());
    if (&bucket == &buckets_[0]) gather_losses(collective);
    exchange(collective, bucket);
  });
}

void GradientExchange::finish() {
  ranks_->wait();
}

void GradientExchange::gather_losses(Collective& collective) {
  gather_equal(collective, std::as_writable_bytes(std::span(losses_)));
}

void GradientExchange::exchange(Collective& collective, const Bucket& bucket) {
  const Collective::Part mine = bucket.sections[rank_];
  for (std::size_t t = 0; t < towers_here(); ++t) {
    for (std::size_t r = 0; r < count_; ++r)
      parts_[r] = {(r * towers_here() + t) * mine.size, mine.size};
    collective.all_to_all(buffers_.gradients[t].data(), bucket.sections, received_.data(), parts_);
  }
  const DenormalsFlushed flushed;  // as on all threads that compute
  mean_(received_.data(), mine.size, buffers_.mean.data() + mine.offset);
  collective.all_gather(buffers_.mean.data(), bucket.sections);
}

int GradientExchange::smallest(int mine) {
  std::vector<int> all(count_);
  all[rank_] = mine;
  ranks_->run([&](Collective& collective) {
    gather_equal(collective, std::as_writable_bytes(std::span(all)));
  });
  return *std::min_element(all.begin(), all.end());
}

}  // namespace towers::cpu
