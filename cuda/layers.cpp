#include "cuda/layers.h"

#include <algorithm>

#include "cuda/conv2d.h"
#include "cuda/matmul.h"

namespace towers::cuda {
namespace {

std::size_t rows_of(const LayerSetting& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.output.height) *
         static_cast<std::size_t>(s.output.width);
}

void need(Workspace& workspace, std::size_t bytes) {
  workspace.bytes = std::max(workspace.bytes, bytes);
}

// The gradient that has just been written to d_input passes the relu below.
void pass_relu_below(Stream& stream, const LayerSetting& s, const float* input) {
  if (s.relu_input)
    relu_backward(stream, static_cast<std::size_t>(s.batch) * s.input.size(), input, s.d_input);
}

class ConvolutionLayer final : public LayerPlan {
 public:
  ConvolutionLayer(const Convolution& convolution, const LayerSetting& setting) : s_(setting) {
    conv_ = make_conv2d({.shape = window_of(s_, convolution.kernel, convolution.stride),
                         .relu = convolution.relu,
                         .training = s_.training,
                         .wants_input_gradient = s_.d_input != nullptr,
                         .allow_tf32 = s_.allow_tf32,
                         .deterministic = s_.deterministic,
                         .direct = s_.direct},
                        *s_.memory, *s_.stream);
    need(*s_.workspace, conv_->workspace());
    if (s_.training)
      need(*s_.workspace, column_sums_scratch(rows_of(s_), s_.output.channels) * sizeof(float));
  }

  void forward(Stream& stream, const float* input) override {
    conv_->forward(stream, input, s_.weights, s_.biases, s_.output_values, s_.workspace->data);
  }
  void weight_gradient(Stream& stream, const float* input) override {
    conv_->weight_gradient(stream, input, s_.d_output, s_.d_weights, s_.workspace->data);
    column_sums(stream, rows_of(s_), s_.output.channels, s_.d_output, s_.d_biases,
                static_cast<float*>(s_.workspace->data));
  }
  void input_gradient(Stream& stream, const float* input) override {
    conv_->input_gradient(stream, s_.d_output, s_.weights, s_.d_input, s_.workspace->data);
    pass_relu_below(stream, s_, input);
  }

 private:
  LayerSetting s_;
  std::unique_ptr<Conv2d> conv_;
};

class DenseLayer final : public LayerPlan {
 public:
  DenseLayer(const Dense& dense, const LayerSetting& setting) : s_(setting) {
    matmul_ = make_matmul({.batch = s_.batch,
                           .inputs = static_cast<int>(s_.input.size()),
                           .outputs = dense.outputs,
                           .relu = dense.relu,
                           .training = s_.training,
                           .wants_input_gradient = s_.d_input != nullptr,
                           .allow_tf32 = s_.allow_tf32},
                          *s_.memory, *s_.stream);
    need(*s_.workspace, matmul_->workspace());
  }

  void forward(Stream& stream, const float* input) override {
    matmul_->forward(stream, input, s_.weights, s_.biases, s_.output_values, s_.workspace->data);
  }
  void weight_gradient(Stream& stream, const float* input) override {
    matmul_->weight_gradient(stream, input, s_.d_output, s_.d_weights, s_.d_biases,
                             s_.workspace->data);
  }
  void input_gradient(Stream& stream, const float* input) override {
    matmul_->input_gradient(stream, s_.d_output, s_.weights, s_.d_input, s_.workspace->data);
    pass_relu_below(stream, s_, input);
  }

 private:
  LayerSetting s_;
  std::unique_ptr<Matmul> matmul_;
};

class MaxPoolLayer final : public LayerPlan {
 public:
  MaxPoolLayer(const MaxPool& pool, const LayerSetting& setting)
      : s_(setting),
        shape_(window_of(s_, pool.size, pool.stride)),
        winners_(s_.memory->allocate<std::uint8_t>(static_cast<std::size_t>(s_.batch) *
                                                   s_.output.size())) {}

  void forward(Stream& stream, const float* input) override {
    max_pool(stream, shape_, input, s_.output_values, winners_.data(), s_.relu_input);
  }
  void input_gradient(Stream& stream, const float*) override {
    max_pool_backward(stream, shape_, s_.d_output, winners_.data(), s_.d_input);
  }

 private:
  LayerSetting s_;
  WindowShape shape_;
  std::span<std::uint8_t> winners_;
};

class NormLayer final : public LayerPlan {
 public:
  NormLayer(const LocalResponseNorm& norm, const LayerSetting& setting)
      : s_(setting), norm_(norm) {}

  void forward(Stream& stream, const float* input) override {
    local_response_norm(stream, norm_, rows_of(s_), s_.output.channels, input, s_.output_values);
  }
  void input_gradient(Stream& stream, const float* input) override {
    local_response_norm_backward(stream, norm_, rows_of(s_), s_.output.channels, input, s_.d_output,
                                 s_.relu_input, s_.d_input);
  }

 private:
  LayerSetting s_;
  LocalResponseNorm norm_;
};

struct Maker {
  const LayerSetting& setting;

  std::unique_ptr<LayerPlan> operator()(const Convolution& convolution) const {
    return std::make_unique<ConvolutionLayer>(convolution, setting);
  }
  std::unique_ptr<LayerPlan> operator()(const Dense& dense) const {
    return std::make_unique<DenseLayer>(dense, setting);
  }
  std::unique_ptr<LayerPlan> operator()(const MaxPool& pool) const {
    return std::make_unique<MaxPoolLayer>(pool, setting);
  }
  std::unique_ptr<LayerPlan> operator()(const LocalResponseNorm& norm) const {
    return std::make_unique<NormLayer>(norm, setting);
  }
  std::unique_ptr<LayerPlan> operator()(const SoftmaxLoss&) const { return nullptr; }
};

}  // namespace

WindowShape window_of(const LayerSetting& s, int size, int stride) {
  return {s.batch,
          s.input,
          s.output,
          size,
          stride,
          same_padding_before(s.input.height, size, stride),
          same_padding_before(s.input.width, size, stride)};
}

std::unique_ptr<LayerPlan> make_layer(const Layer& layer, const LayerSetting& setting) {
  return std::visit(Maker{setting}, layer.op);
}

}  // namespace towers::cuda
