// The makers of a chain's layers, and the layers that have no variables.

#include <string>

#include "core/error.h"
#include "cpu/emulated_bf16.h"
#include "cpu/memory.h"
#include "cpu/onednn.h"
#include "cpu/spatial_layer.h"

namespace towers::cpu {
namespace {

class Pool final : public SpatialLayer {
 public:
  Pool(const MaxPool& pool, const Extent& input, const Extent& output, const LayerSetting& setting)
      : shape_{input,
               output,
               pool.size,
               pool.stride,
               same_padding_before(input.height, pool.size, pool.stride),
               same_padding_before(input.width, pool.size, pool.stride)},
        kernels_(setting.kernels->pool),
        relu_input_(setting.relu_input) {
    if (pool.size > kLargestPoolSize)
      throw Error("max pooling over " + std::to_string(pool.size) +
                  " rows is not available on the CPU; the largest window is " +
                  std::to_string(kLargestPoolSize));
    if (setting.training)
      winners_ = setting.memory->allocate<std::uint8_t>(
          output.size() * static_cast<std::size_t>(setting.batch_size));
  }

  Layout input_layout() const override { return {shape_.input}; }
  Layout output_gradient_layout() const override { return {shape_.output}; }
  bool keeps_input() const override { return false; }
  void forward(ConstView in, View out, Run run) override {
    kernels_.forward(shape_, in, out, winners_.empty() ? nullptr : winner(run), relu_input_);
  }
  void backward(const RunGradients& x, Run run) override {
    if (x.d_in.data != nullptr) kernels_.backward(shape_, x.d_out, winner(run), x.d_in);
  }

 private:
  std::uint8_t* winner(Run run) const {
    return winners_.data() + shape_.output.size() * static_cast<std::size_t>(run.first);
  }

  PoolShape shape_;
  PoolKernels kernels_;
  bool relu_input_;
  std::span<std::uint8_t> winners_;
};

class Norm final : public SpatialLayer {
 public:
  Norm(const LocalResponseNorm& norm, const Extent& extent, const LayerSetting& setting)
      : shape_{extent, norm.depth_radius, static_cast<float>(norm.bias),
               static_cast<float>(norm.alpha), static_cast<float>(norm.beta)},
        kernels_(setting.kernels->norm),
        relu_input_(setting.relu_input),
        scratch_(setting.memory->floats(shape_.scratch() *
                                        static_cast<std::size_t>(setting.pool->threads()))) {}

  Layout input_layout() const override { return {shape_.extent}; }
  Layout output_gradient_layout() const override { return {shape_.extent}; }
  bool keeps_input() const override { return true; }
  void forward(ConstView in, View out, Run run) override {
    kernels_.forward(shape_, in, out, scratch(run));
  }
  void backward(const RunGradients& x, Run run) override {
    if (x.d_in.data != nullptr)
      kernels_.backward(shape_, x.in, x.d_out, x.d_in, relu_input_, scratch(run));
  }

 private:
  float* scratch(Run run) const {
    return scratch_.data() + shape_.scratch() * static_cast<std::size_t>(run.worker);
  }

  NormShape shape_;
  NormKernels kernels_;
  bool relu_input_;
  std::span<float> scratch_;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_conv2d(const Convolution& convolution, const Extent& input,
                                          const Extent& output, const Variable& weights,
                                          const Variable& biases, const LayerSetting& setting) {
  if (setting.arithmetic.products == Products::bf16)
    return make_onednn_conv2d(convolution, input, output, weights, biases, setting);
  if (setting.arithmetic.products == Products::bf16_emulated)
    return make_emulated_conv2d(convolution, input, output, weights, biases, setting);
  switch (choose_convolution_method(setting.arithmetic.convolution, convolution, input)) {
    case ConvolutionMethod::winograd4:
      if (input.channels == NarrowWinogradKernels::kChannels && !setting.wants_input_gradient)
        return make_narrow_winograd_conv2d(convolution, input, weights, biases, setting);
      return make_winograd_conv2d(convolution, input, weights, biases, setting.kernels->winograd4,
                                  setting);
    case ConvolutionMethod::winograd2:
      return make_winograd_conv2d(convolution, input, weights, biases, setting.kernels->winograd2,
                                  setting);
    default:
      return make_direct_conv2d(convolution, input, output, weights, biases, setting);
  }
}

std::unique_ptr<SpatialLayer> make_max_pool(const MaxPool& pool, const Extent& input,
                                            const Extent& output, const LayerSetting& setting) {
  return std::make_unique<Pool>(pool, input, output, setting);
}

std::unique_ptr<SpatialLayer> make_local_response_norm(const LocalResponseNorm& norm,
                                                       const Extent& extent,
                                                       const LayerSetting& setting) {
  return std::make_unique<Norm>(norm, extent, setting);
}

}  // namespace towers::cpu
