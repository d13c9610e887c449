// A max pooling and a local response normalization in one pass, whichever comes first.

#include <cstdint>

#include "cuda/layers.h"

namespace towers::cuda {
namespace {

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

// Two layers that are a pool and a norm, or neither.
struct PoolAndNorm {
  template <class T>
  PoolAndNorm(const Layer& first, const LayerSetting<T>& first_setting, const Layer& second,
              const LayerSetting<T>& second_setting)
      : pool_first(std::holds_alternative<MaxPool>(first.op)),
        pool(std::get_if<MaxPool>(pool_first ? &first.op : &second.op)),
        norm(std::get_if<LocalResponseNorm>(pool_first ? &second.op : &first.op)) {
    if (pool != nullptr)
      shape = window_of(pool_first ? first_setting : second_setting, pool->size, pool->stride);
  }
  bool fit() const { return pool != nullptr && norm != nullptr && pool_and_norm_fit(shape, *norm); }

  bool pool_first;
  const MaxPool* pool;
  const LocalResponseNorm* norm;
  WindowShape shape{};
};

}  // namespace

template <class T>
Pairing pairing_of(const Layer& first, const LayerSetting<T>& first_setting, const Layer& second,
                   const LayerSetting<T>& second_setting) {
  const PoolAndNorm pair(first, first_setting, second, second_setting);
  if (!pair.fit()) return Pairing::none;
  // The norm's backward pass reads its input, which is a pool's output where the pool comes first.
  return pair.pool_first && first_setting.training ? Pairing::output_written
                                                   : Pairing::output_unwritten;
}

template <class T>
std::unique_ptr<LayerPlan<T>> make_layer_pair(const Layer& first,
                                              const LayerSetting<T>& first_setting,
                                              const Layer& second,
                                              const LayerSetting<T>& second_setting) {
  const PoolAndNorm pair(first, first_setting, second, second_setting);
  if (pair.pool_first)
    return std::make_unique<PoolThenNorm<T>>(pair.shape, first_setting, *pair.norm, second_setting);
  return std::make_unique<NormThenPool<T>>(*pair.norm, first_setting, pair.shape, second_setting);
}

#define TOWERS_INSTANTIATE(T)                                                                  \
  template Pairing pairing_of(const Layer&, const LayerSetting<T>&, const Layer&,              \
                              const LayerSetting<T>&);                                         \
  template std::unique_ptr<LayerPlan<T>> make_layer_pair(const Layer&, const LayerSetting<T>&, \
                                                         const Layer&, const LayerSetting<T>&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
