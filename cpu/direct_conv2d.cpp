// Direct convolution: each output row is one matrix multiplication whose A is read straight from
// the zero-padded image. Forward it is pixels x (window) times (window) x outputs; the input's
// gradient is the same with the weights turned round; the weights' gradient has A transposed.

#include <algorithm>

#include "cpu/memory.h"
#include "cpu/spatial_layer.h"

namespace towers::cpu {
namespace {

class DirectConv2d final : public SpatialLayer {
 public:
  DirectConv2d(const Convolution& convolution, const Extent& input, const Extent& output,
               const Variable& weights, const Variable& biases, const LayerSetting& setting)
      : convolution_(convolution),
        setting_(setting),
        gemm_(setting.kernels->gemm),
        weights_(weights),
        biases_(biases),
        inputs_(input.channels),
        outputs_(output.channels) {
    const int kernel = convolution.kernel, stride = convolution.stride;
    const int top = same_padding_before(input.height, kernel, stride);
    const int left = same_padding_before(input.width, kernel, stride);
    const auto after = [&](int size, int out, int before) {
      return std::max(0, (out - 1) * stride + kernel - size - before);
    };
    input_ = {input, top, left, after(input.height, output.height, top),
              after(input.width, output.width, left)};
    d_output_ = {output};
    if (setting.wants_input_gradient) {
      // With zeros between its pixels in place of the stride, and around them, the output's
      // gradient convolved at stride 1 gives the input's.
      d_output_ = {output,
                   kernel - 1 - top,
                   kernel - 1 - left,
                   input.height - 1 + top - (output.height - 1) * stride,
                   input.width - 1 + left - (output.width - 1) * stride,
                   stride};
    }

    const auto size = [](std::ptrdiff_t values) { return static_cast<std::size_t>(values); };
    window_ = static_cast<std::ptrdiff_t>(kernel) * kernel;
    packed_weights_ = setting.memory->floats(size(window_ * inputs_ * gemm_.padded(outputs_)));
    if (setting.wants_input_gradient)
      turned_weights_ = setting.memory->floats(size(window_ * outputs_ * gemm_.padded(inputs_)));
    if (setting.training) {
      pixels_ = static_cast<std::ptrdiff_t>(output.height) * output.width;
      packed_size_ = size(pixels_ * gemm_.padded(outputs_));
      packed_d_out_ = setting.memory->floats(packed_size_ * size(setting.pool->threads()));
    }
  }

  Layout input_layout() const override { return input_; }
  Layout output_gradient_layout() const override { return d_output_; }
  bool keeps_input() const override { return true; }

  void prepare(std::span<const float> variables) override {
    const float* weights = variables.data() + weights_.offset;
    biases_now_ = variables.data() + biases_.offset;
    // One task per kernel position.
    setting_.pool->parallel_for(static_cast<int>(window_), [&](int position, int) {
      const float* from = weights + position * inputs_ * outputs_;
      gemm_.pack_panels({from, outputs_, 1, inputs_, outputs_,
                         packed_weights_.data() + position * inputs_ * gemm_.panel,
                         window_ * inputs_ * gemm_.panel});
      if (!setting_.wants_input_gradient) return;
      const std::ptrdiff_t opposite = window_ - 1 - position;
      gemm_.pack_panels({from, 1, outputs_, outputs_, inputs_,
                         turned_weights_.data() + opposite * outputs_ * gemm_.panel,
                         window_ * outputs_ * gemm_.panel});
    });
  }

  void forward(ConstView in, View out, Run) override {
    Gemm g;
    g.a = in.at(-input_.top, -input_.left);
    g.a_group = convolution_.stride * in.row;
    g.a_row = convolution_.stride * in.pixel;
    g.a_segment = in.row;
    g.segments = convolution_.kernel;
    g.segment_length = convolution_.kernel * inputs_;
    g.b = packed_weights_.data();
    g.c = out.data;
    g.c_group = out.row;
    g.c_row = out.pixel;
    g.groups = d_output_.extent.height;
    g.rows = d_output_.extent.width;
    g.columns = outputs_;
    g.start = biases_now_;
    g.relu = convolution_.relu;
    gemm_.gemm(g);
  }

  void backward(const RunGradients& x, Run run) override {
    weight_gradient(x, run);
    if (x.d_in.data != nullptr) input_gradient(x);
  }

 private:
  void weight_gradient(const RunGradients& x, Run run) const {
    const Extent& output = d_output_.extent;
    float* packed = packed_d_out_.data() + packed_size_ * static_cast<std::size_t>(run.worker);
    for (int y = 0; y < output.height; ++y)
      gemm_.pack_panels({x.d_out.at(y, 0), x.d_out.pixel, 1, output.width, outputs_,
                         packed + y * output.width * gemm_.panel, pixels_ * gemm_.panel});

    Gemm g;
    g.a_row = 1;
    g.a_k = convolution_.stride * x.in.pixel;
    g.a_segment = convolution_.stride * x.in.row;
    g.segments = output.height;
    g.segment_length = output.width;
    g.b = packed;
    g.c_row = outputs_;
    g.rows = convolution_.kernel * inputs_;
    g.columns = outputs_;
    g.start_row = outputs_;
    float* weights = x.weights.data() + (weights_.offset - setting_.gradient_origin);
    for (int ky = 0; ky < convolution_.kernel; ++ky) {
      g.a = x.in.at(ky - input_.top, -input_.left);
      g.c = weights + ky * g.rows * outputs_;
      g.start = x.begins ? nullptr : g.c;
      gemm_.gemm(g);
    }
    gemm_.column_sums(packed, pixels_, outputs_, !x.begins,
                      x.weights.data() + (biases_.offset - setting_.gradient_origin));
  }

  void input_gradient(const RunGradients& x) const {
    const Extent& input = input_.extent;
    const std::ptrdiff_t row = x.d_out.row / d_output_.dilation;  // of the padded buffer
    Gemm g;
    g.a = x.d_out.data - d_output_.top * row - d_output_.left * outputs_;
    g.a_group = row;
    g.a_row = outputs_;
    g.a_segment = row;
    g.segments = convolution_.kernel;
    g.segment_length = convolution_.kernel * outputs_;
    g.b = turned_weights_.data();
    g.c = x.d_in.data;
    g.c_group = x.d_in.row;
    g.c_row = x.d_in.pixel;
    g.groups = input.height;
    g.rows = input.width;
    g.columns = inputs_;
    gemm_.gemm(g);
    if (!setting_.relu_input) return;
    for (int y = 0; y < input.height; ++y)
      for (int column = 0; column < input.width; ++column)
        setting_.kernels->update.relu_backward(static_cast<std::size_t>(inputs_),
                                               x.in.at(y, column), x.d_in.at(y, column));
  }

  Convolution convolution_;
  LayerSetting setting_;
  GemmKernels gemm_;
  Variable weights_, biases_;
  std::ptrdiff_t inputs_, outputs_;  // channels
  std::ptrdiff_t window_ = 0;        // kernel positions
  std::ptrdiff_t pixels_ = 0;        // of the output
  Layout input_, d_output_;
  const float* biases_now_ = nullptr;
  std::span<float> packed_weights_, turned_weights_;
  std::span<float> packed_d_out_;  // per worker
  std::size_t packed_size_ = 0;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_direct_conv2d(const Convolution& convolution,
                                                 const Extent& input, const Extent& output,
                                                 const Variable& weights, const Variable& biases,
                                                 const LayerSetting& setting) {
  return std::make_unique<DirectConv2d>(convolution, input, output, weights, biases, setting);
}

}  // namespace towers::cpu
