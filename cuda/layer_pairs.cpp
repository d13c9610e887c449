// A max pooling and a local response normalization in one pass, whichever comes first.

#include <cstdint>

#include "cuda/layers.h"

namespace towers::cuda {
namespace {

template <class T>
std::span<std::uint8_t> allocate_winners(const LayerSetting<T>& pool) {
  return pool.memory->template allocate<std::uint8_t>(static_cast<std::size_t>(pool.batch) *
                                                      pool.output.size());
}

template <class T>
class PoolThenNorm final : public LayerPlan<T> {
 public:
  PoolThenNorm(const WindowShape& shape, const LayerSetting<T>& pool, const LocalResponseNorm& norm,
               const LayerSetting<T>& norm_setting)
      : shape_(shape),
        pool_(pool),
        norm_(norm),
        norm_setting_(norm_setting),
        winners_(allocate_winners(pool)) {}

  void forward(Stream& stream, const T* input) override {
    pool_then_norm(stream, shape_, norm_, input, pool_.relu_input, pool_.output_values,
                   winners_.data(), norm_setting_.output_values);
  }
  void input_gradient(Stream& stream, const T* /*input*/) override {
    pool_then_norm_backward(stream, shape_, norm_, pool_.output_values, norm_setting_.d_output,
                            winners_.data(), pool_.d_input);
  }

 private:
  WindowShape shape_;
  LayerSetting<T> pool_;
  LocalResponseNorm norm_;
  LayerSetting<T> norm_setting_;
  std::span<std::uint8_t> winners_;
};

template <class T>
class NormThenPool final : public LayerPlan<T> {
 public:
  NormThenPool(const LocalResponseNorm& norm, const LayerSetting<T>& norm_setting,
               const WindowShape& shape, const LayerSetting<T>& pool)
      : norm_(norm),
        norm_setting_(norm_setting),
        shape_(shape),
        pool_(pool),
        winners_(allocate_winners(pool)) {}

  void forward(Stream& stream, const T* input) override {
    norm_then_pool(stream, norm_, shape_, input, pool_.output_values, winners_.data());
  }
  void input_gradient(Stream& stream, const T* input) override {
    norm_then_pool_backward(stream, norm_, shape_, input, pool_.d_output, winners_.data(),
                            norm_setting_.relu_input, norm_setting_.d_input);
  }

 private:
  LocalResponseNorm norm_;
  LayerSetting<T> norm_setting_;
  WindowShape shape_;
  LayerSetting<T> pool_;
  std::span<std::uint8_t> winners_;
};

}  // namespace

template <class T>
std::unique_ptr<LayerPlan<T>> make_layer_pair(const Layer& first,
                                              const LayerSetting<T>& first_setting,
                                              const Layer& second,
                                              const LayerSetting<T>& second_setting) {
  const bool pool_first = std::holds_alternative<MaxPool>(first.op);
  const auto* pool = std::get_if<MaxPool>(pool_first ? &first.op : &second.op);
  const auto* norm = std::get_if<LocalResponseNorm>(pool_first ? &second.op : &first.op);
  if (pool == nullptr || norm == nullptr) return nullptr;
  const WindowShape shape =
      window_of(pool_first ? first_setting : second_setting, pool->size, pool->stride);
  if (!pool_and_norm_fit(shape, *norm)) return nullptr;
  if (pool_first)
    return std::make_unique<PoolThenNorm<T>>(shape, first_setting, *norm, second_setting);
  return std::make_unique<NormThenPool<T>>(*norm, first_setting, shape, second_setting);
}

#define TOWERS_INSTANTIATE(T)                                                                  \
  template std::unique_ptr<LayerPlan<T>> make_layer_pair(const Layer&, const LayerSetting<T>&, \
                                                         const Layer&, const LayerSetting<T>&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
