// The first convolution of a net by Winograd's transforms: images have few channels, and their
// gradient is not wanted.

#include <algorithm>

#include "cpu/memory.h"
#include "cpu/spatial_layer.h"

namespace towers::cpu {
namespace {

std::size_t size(std::ptrdiff_t values) {
  return static_cast<std::size_t>(values);
}

class NarrowWinogradConv2d final : public SpatialLayer {
 public:
  NarrowWinogradConv2d(const Convolution& convolution, const Extent& extent,
                       const Variable& weights, const Variable& biases, const LayerSetting& setting)
      : setting_(setting),
        kernels_(setting.kernels->winograd4),
        narrow_(setting.kernels->narrow_winograd4),
        weights_(weights),
        biases_(biases),
        relu_(convolution.relu),
        outputs_(convolution.outputs) {
    const int m = kernels_.outputs, r = kernels_.kernel;
    grid_ = {1,
             (extent.height + m - 1) / m,
             (extent.width + m - 1) / m,
             extent.height,
             extent.width,
             outputs_};
    // Zeros around the image as far as the tiles read.
    const int before = same_padding_before(extent.height, r, 1);
    input_ = {extent, before, before, grid_.rows * m + r - 1 - before - extent.height,
              grid_.columns * m + r - 1 - before - extent.width};
    d_output_ = {{extent.height, extent.width, outputs_},
                 0,
                 0,
                 grid_.rows * m - extent.height,
                 grid_.columns * m - extent.width};

    vectors_ = (outputs_ + narrow_.lanes - 1) / narrow_.lanes;
    const std::ptrdiff_t workers = setting.pool->threads();
    Memory& memory = *setting.memory;
    transformed_weights_ = memory.floats(size(matrices()));
    packed_biases_ = memory.floats(size(vectors_ * narrow_.lanes));
    // Beyond the last tile's values, room for the tiles read with it, and for the vector that
    // writes them.
    values_size_ =
        (grid_.rows * grid_.columns + narrow_.together - 1) * kernels_.positions() * kInputs +
        narrow_.lanes;
    values_ = memory.floats(size(values_size_ * workers));
    half_size_ = narrow_.half_size(grid_);
    half_ = memory.floats(size(half_size_ * workers));
    if (!setting.training) return;
    sums_size_ = matrices() + vectors_ * narrow_.lanes;
    sums_ = memory.floats(size(sums_size_ * workers));
  }

  Layout input_layout() const override { return input_; }
  Layout output_gradient_layout() const override { return d_output_; }
  bool keeps_input() const override { return true; }

  void prepare(std::span<const float> variables) override {
    std::copy_n(variables.data() + biases_.offset, outputs_, packed_biases_.data());
    kernels_.transform_weights(
        {variables.data() + weights_.offset, kInputs * outputs_, outputs_, kInputs, outputs_},
        positions_of(transformed_weights_.data()));
  }

  void forward(ConstView in, View out, Run run) override {
    narrow_.convolve(grid_, transformed(in, run), transformed_weights_.data(), out,
                     {packed_biases_.data(), relu_, {}});
  }

  void backward(const RunGradients& x, Run run) override {
    float* sums = sums_.data() + sums_size_ * run.worker;
    float* bias_sums = sums + matrices();
    if (x.begins) std::fill_n(sums, sums_size_, 0.0f);
    narrow_.add_gradient(grid_, transformed(x.in, run), x.d_out, sums, bias_sums);
    if (!x.ends) return;
    const auto gradient = [&](const Variable& variable) {
      return x.weights.data() + (variable.offset - setting_.gradient_origin);
    };
    std::copy_n(bias_sums, outputs_, gradient(biases_));
    kernels_.gather_weights(positions_of(sums),
                            {gradient(weights_), kInputs * outputs_, outputs_, kInputs, outputs_});
  }

 private:
  // Values of the weights at all positions.
  std::ptrdiff_t matrices() const {
    return vectors_ * kernels_.positions() * kInputs * narrow_.lanes;
  }
  Positions positions_of(float* matrices) const {
    return {matrices, kInputs * narrow_.lanes, narrow_.lanes, narrow_.lanes,
            kernels_.positions() * kInputs * narrow_.lanes};
  }

  const float* transformed(ConstView in, const Run& run) const {
    float* values = values_.data() + values_size_ * run.worker;
    narrow_.transform(grid_, in.from(-input_.top, -input_.left),
                      half_.data() + half_size_ * run.worker, values);
    return values;
  }

  LayerSetting setting_;
  WinogradKernels kernels_;
  NarrowWinogradKernels narrow_;
  Variable weights_, biases_;
  bool relu_;
  static constexpr int kInputs = NarrowWinogradKernels::kChannels;
  int outputs_;                 // channels
  std::ptrdiff_t vectors_ = 0;  // of outputs
  TileGrid grid_;
  Layout input_, d_output_;
  std::span<float> transformed_weights_, packed_biases_;
  // Per worker: transformed tiles, these half way, the weights' gradients on their way.
  std::span<float> values_, half_, sums_;
  std::ptrdiff_t values_size_ = 0, half_size_ = 0, sums_size_ = 0;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_narrow_winograd_conv2d(const Convolution& convolution,
                                                          const Extent& input,
                                                          const Variable& weights,
                                                          const Variable& biases,
                                                          const LayerSetting& setting) {
  return std::make_unique<NarrowWinogradConv2d>(convolution, input, weights, biases, setting);
}

}  // namespace towers::cpu
