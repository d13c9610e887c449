// A max pooling and a local response normalization in one pass, whichever comes first.

#include <cstdint>

#include "cuda/layers.h"

namespace towers::cuda {
namespace {

std::span<std::uint8_t> allocate_winners(const LayerSetting& pool) {
  return pool.memory->allocate<std::uint8_t>(static_cast<std::size_t>(pool.batch) *
                                             pool.output.size());
}

class PoolThenNorm final : public LayerPlan {
 public:
  PoolThenNorm(const WindowShape& shape, const LayerSetting& pool, const LocalResponseNorm& norm,
               const LayerSetting& norm_setting)
      : shape_(shape),
        pool_(pool),
        norm_(norm),
        norm_setting_(norm_setting),
        winners_(allocate_winners(pool)) {}

  void forward(Stream& stream, const float* input) override {
    pool_then_norm(stream, shape_, norm_, input, pool_.relu_input, pool_.output_values,
                   winners_.data(), norm_setting_.output_values);
  }
  void input_gradient(Stream& stream, const float* /*input*/) override {
    pool_then_norm_backward(stream, shape_, norm_, pool_.output_values, norm_setting_.d_output,
                            winners_.data(), pool_.d_input);
  }

 private:
  WindowShape shape_;
  LayerSetting pool_;
  LocalResponseNorm norm_;
  LayerSetting norm_setting_;
  std::span<std::uint8_t> winners_;
};

class NormThenPool final : public LayerPlan {
 public:
  NormThenPool(const LocalResponseNorm& norm, const LayerSetting& norm_setting,
               const WindowShape& shape, const LayerSetting& pool)
      : norm_(norm),
        norm_setting_(norm_setting),
        shape_(shape),
        pool_(pool),
        winners_(allocate_winners(pool)) {}

  void forward(Stream& stream, const float* input) override {
    norm_then_pool(stream, norm_, shape_, input, pool_.output_values, winners_.data());
  }
  void input_gradient(Stream& stream, const float* input) override {
    norm_then_pool_backward(stream, norm_, shape_, input, pool_.d_output, winners_.data(),
                            norm_setting_.relu_input, norm_setting_.d_input);
  }

 private:
  LocalResponseNorm norm_;
  LayerSetting norm_setting_;
  WindowShape shape_;
  LayerSetting pool_;
  std::span<std::uint8_t> winners_;
};

}  // namespace

std::unique_ptr<LayerPlan> make_layer_pair(const Layer& first, const LayerSetting& first_setting,
                                           const Layer& second,
                                           const LayerSetting& second_setting) {
  const bool pool_first = std::holds_alternative<MaxPool>(first.op);
  const auto* pool = std::get_if<MaxPool>(pool_first ? &first.op : &second.op);
  const auto* norm = std::get_if<LocalResponseNorm>(pool_first ? &second.op : &first.op);
  if (pool == nullptr || norm == nullptr) return nullptr;
  const WindowShape shape =
      window_of(pool_first ? first_setting : second_setting, pool->size, pool->stride);
  if (!pool_and_norm_fit(shape, *norm)) return nullptr;
  if (pool_first)
    return std::make_unique<PoolThenNorm>(shape, first_setting, *norm, second_setting);
  return std::make_unique<NormThenPool>(*norm, first_setting, shape, second_setting);
}

}  // namespace towers::cuda
