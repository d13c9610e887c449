#pragma once
// A convolution's pass as cudnn-frontend is told of it. For cudnn_graph.cpp alone: what it includes
// takes minutes to compile.

#include <cudnn_frontend.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/cudnn_graph.h"

namespace towers::cuda {

namespace fe = cudnn_frontend;

// Dimensions as cuDNN wants them, N C H W, with the strides of NHWC.
struct TensorShape {
  std::int64_t n, c, h, w;

  std::vector<std::int64_t> dimensions() const { return {n, c, h, w}; }
  std::vector<std::int64_t> strides() const { return {h * w * c, 1, w * c, c}; }
  // In any precision.
  std::size_t most_bytes() const { return static_cast<std::size_t>(n * c * h * w) * sizeof(float); }
};

struct TensorShapes {
  explicit TensorShapes(const WindowShape& s)
      : input{s.batch, s.input.channels, s.input.height, s.input.width},
        filter{s.output.channels, s.input.channels, s.size, s.size},
        biases{1, s.output.channels, 1, 1},
        output{s.batch, s.output.channels, s.output.height, s.output.width} {}

  const TensorShape& of(ConvolutionTensor tensor) const {
    switch (tensor) {
      case ConvolutionTensor::input:
        return input;
      case ConvolutionTensor::filter:
        return filter;
      case ConvolutionTensor::biases:
        return biases;
      case ConvolutionTensor::output:
        break;
    }
    return output;
  }
  double flop() const {
    return 2.0 * static_cast<double>(output.n * output.h * output.w) *
           static_cast<double>(filter.n * filter.c * filter.h * filter.w);
  }

  TensorShape input, filter, biases, output;
};

inline fe::DataType_t data_type(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return fe::DataType_t::BFLOAT16;
    case Precision::fp16:
      return fe::DataType_t::HALF;
    default:
      return fe::DataType_t::FLOAT;
  }
}

inline std::int64_t id_of(ConvolutionTensor tensor) {
  return 1 + static_cast<std::int64_t>(tensor);
}

// Tensors are NHWC and KRSC, of the precision; sums and what lies between are float.
class ConvolutionGraph {
 public:
  ConvolutionGraph(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass)
      : shapes_(setting.shape), setting_(setting) {
    graph_.set_io_data_type(data_type(precision))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    switch (pass) {
      case ConvolutionPass::forward_fused:
      case ConvolutionPass::forward:
        describe_forward(pass == ConvolutionPass::forward_fused);
        break;
      case ConvolutionPass::input_gradient:
        describe_input_gradient();
        break;
      case ConvolutionPass::weight_gradient:
        describe_weight_gradient();
        break;
    }
  }

  fe::graph::Graph* operator->() { return &graph_; }
  const fe::graph::Graph* operator->() const { return &graph_; }
  const TensorShapes& shapes() const { return shapes_; }
  const std::vector<ConvolutionTensor>& used() const { return used_; }  // read or written

 private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  Tensor tensor(ConvolutionTensor which) {
    used_.push_back(which);
    const TensorShape& shape = shapes_.of(which);
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(id_of(which))
                             .set_dim(shape.dimensions())
                             .set_stride(shape.strides()));
  }

  void set_result(const Tensor& result, ConvolutionTensor which) {
    used_.push_back(which);
    const TensorShape& shape = shapes_.of(which);
    result->set_output(true)
        .set_uid(id_of(which))
        .set_dim(shape.dimensions())
        .set_stride(shape.strides());
  }

  template <class Attributes>
  Attributes window() const {
    const WindowShape& s = setting_.shape;
    const auto after = [&](int input, int output, int before) -> std::int64_t {
      return std::max(0, (output - 1) * s.stride + s.size - input - before);
    };
    return Attributes()
        .set_pre_padding({s.pad_top, s.pad_left})
        .set_post_padding({after(s.input.height, s.output.height, s.pad_top),
                           after(s.input.width, s.output.width, s.pad_left)})
        .set_stride({s.stride, s.stride})
        .set_dilation({1, 1});
  }

  void describe_forward(bool fused) {
    Tensor y =
        graph_.conv_fprop(tensor(ConvolutionTensor::input), tensor(ConvolutionTensor::filter),
                          window<fe::graph::Conv_fprop_attributes>());
    if (fused) {
      y = graph_.pointwise(y, tensor(ConvolutionTensor::biases),
                           fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
      if (setting_.relu)
        y = graph_.pointwise(
            y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    }
    set_result(y, ConvolutionTensor::output);
  }

  void describe_input_gradient() {
    set_result(
        graph_.conv_dgrad(tensor(ConvolutionTensor::output), tensor(ConvolutionTensor::filter),
                          window<fe::graph::Conv_dgrad_attributes>()),
        ConvolutionTensor::input);
  }

  void describe_weight_gradient() {
    set_result(
        graph_.conv_wgrad(tensor(ConvolutionTensor::output), tensor(ConvolutionTensor::input),
                          window<fe::graph::Conv_wgrad_attributes>()),
        ConvolutionTensor::filter);
  }

  TensorShapes shapes_;
  Conv2dSetting setting_;
  fe::graph::Graph graph_;
  std::vector<ConvolutionTensor> used_;
};

}  // namespace towers::cuda
