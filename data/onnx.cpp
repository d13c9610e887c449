#include "data/onnx.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/distortion.h"
#include "data/dataset.h"
#include "protos/onnx.pb.h"

namespace towers::data {
namespace {

namespace onnx = proto::onnx;

constexpr int kOperatorSet = 17;
constexpr int kIrVersion = 8;  // the one that came with operator set 17
constexpr const char* kImages = "images";

using Sizes = std::vector<std::int64_t>;

// Rows or columns of SAME padding behind the last one.
std::int64_t same_padding_after(int size, int kernel, int stride) {
  const int outputs = (size + stride - 1) / stride;
  return std::max(0, (outputs - 1) * stride + kernel - size) -
         same_padding_before(size, kernel, stride);
}

class Builder {
 public:
  Builder(onnx::Graph& graph, const VariableLayout& layout, std::span<const float> variables)
      : graph_(graph), layout_(layout), variables_(variables) {}

  // Images of bytes to the evaluation input, as core/distortion.h makes it. The sum over a crop is
  // a whole number below 2^24, so float32 adds it exactly in any order.
  void preprocess() {
    const std::int64_t begin = Distortion{}.top, end = begin + kCropSide;
    node("Slice", "preprocessing/crop",
         {at_, integers("preprocessing/starts", {begin, begin}),
          integers("preprocessing/ends", {end, end}), integers("preprocessing/axes", {1, 2})});
    attribute(node("Cast", "preprocessing/cast", {at_}), "to", onnx::Tensor::FLOAT);
    const std::string centered = subtract_mean("preprocessing/centered");
    node("Mul", "preprocessing/squares", {centered, centered});
    mean("preprocessing/variance");
    node("Sqrt", "preprocessing/deviation", {at_});
    const float least = 1 / std::sqrt(3.0f * kCropPixels);
    node("Max", "preprocessing/divisor", {at_, floats("preprocessing/least", {}, {&least, 1})});
    node("Div", "preprocessing/standardized", {centered, at_});
  }

  void add(const Layer& layer, Extent input, std::size_t index) {
    const auto& op = layer.op;
    if (const auto* convolution = std::get_if<Convolution>(&op))
      add(layer, *convolution, input, index);
    else if (const auto* pool = std::get_if<MaxPool>(&op))
      add(layer, *pool, input);
    else if (const auto* norm = std::get_if<LocalResponseNorm>(&op))
      add(layer, *norm);
    else if (const auto* dense = std::get_if<Dense>(&op))
      add(layer, *dense, input, index);
    else
      finish();
  }

 private:
  enum class Order { nhwc, nchw, vector };  // of the value that at_ names

  onnx::Node& node(const std::string& type, const std::string& name,
                   const std::vector<std::string>& inputs) {
    onnx::Node* added = graph_.add_node();
    added->set_op_type(type);
    added->set_name(name);
    for (const std::string& input : inputs) added->add_input(input);
    added->add_output(name);
    at_ = name;
    return *added;
  }

  static void attribute(onnx::Node& node, const char* name, const Sizes& values) {
    onnx::Attribute* added = node.add_attribute();
    added->set_name(name);
    added->set_type(onnx::Attribute::INTS);
    added->mutable_ints()->Add(values.begin(), values.end());
  }
  static void attribute(onnx::Node& node, const char* name, int value) {
    onnx::Attribute* added = node.add_attribute();
    added->set_name(name);
    added->set_type(onnx::Attribute::INT);
    added->set_i(value);
  }
  static void attribute(onnx::Node& node, const char* name, double value) {
    onnx::Attribute* added = node.add_attribute();
    added->set_name(name);
    added->set_type(onnx::Attribute::FLOAT);
    added->set_f(static_cast<float>(value));
  }

  std::string constant(const std::string& name, onnx::Tensor::DataType type, const Sizes& shape,
                       std::span<const std::byte> bytes) {
    onnx::Tensor* added = graph_.add_initializer();
    added->set_name(name);
    added->set_data_type(type);
    added->mutable_dims()->Add(shape.begin(), shape.end());
    added->set_raw_data(bytes.data(), bytes.size());
    return name;
  }
  std::string floats(const std::string& name, const Sizes& shape, std::span<const float> values) {
    return constant(name, onnx::Tensor::FLOAT, shape, std::as_bytes(values));
  }
  std::string integers(const std::string& name, const Sizes& values) {
    return constant(name, onnx::Tensor::INT64, {static_cast<std::int64_t>(values.size())},
                    std::as_bytes(std::span(values)));
  }

  void mean(const std::string& name) {
    attribute(node("ReduceMean", name, {at_}), "axes", Sizes{1, 2, 3});
  }
  std::string subtract_mean(const std::string& name) {
    const std::string value = at_;
    mean(name + "/mean");
    node("Sub", name, {value, at_});
    return name;
  }

  // ONNX's spatial operators take channels first.
  void to_nchw(const Layer& layer) {
    if (order_ == Order::vector)
      throw std::invalid_argument("layer " + layer.name + " is spatial and follows a dense one");
    if (order_ == Order::nhwc)
      attribute(node("Transpose", layer.name + "/channels_first", {at_}), "perm", {0, 3, 1, 2});
    order_ = Order::nchw;
  }
  // The dense layers' weights are for the values in the order height, width, channels.
  void to_vector(const Layer& layer) {
    if (order_ == Order::nchw)
      attribute(node("Transpose", layer.name + "/channels_last", {at_}), "perm", {0, 2, 3, 1});
    if (order_ != Order::vector)
      attribute(node("Flatten", layer.name + "/flatten", {at_}), "axis", 1);
    order_ = Order::vector;
  }

  static void window(onnx::Node& node, Extent input, int kernel, int stride) {
    attribute(node, "kernel_shape", Sizes{kernel, kernel});
    attribute(node, "strides", Sizes{stride, stride});
    attribute(node, "pads",
              Sizes{same_padding_before(input.height, kernel, stride),
                    same_padding_before(input.width, kernel, stride),
                    same_padding_after(input.height, kernel, stride),
                    same_padding_after(input.width, kernel, stride)});
  }

  // Weights, then biases.
  std::pair<const Variable*, const Variable*> variables_of(std::size_t layer) const {
    const auto& all = layout_.variables();
    const auto first = std::find_if(all.begin(), all.end(),
                                    [layer](const Variable& v) { return v.layer == layer; });
    return {&*first, &*(first + 1)};
  }
  std::string initializer(const Variable& v) {
    return floats(v.name, v.shape, view(variables_, v));
  }
  // [kernel, kernel, inputs, outputs] as [outputs, inputs, kernel, kernel]
  std::string convolution_weights(const Variable& v) {
    const std::span<const float> from = view(variables_, v);
    const std::size_t outputs = static_cast<std::size_t>(v.shape[3]);
    const std::size_t inputs = static_cast<std::size_t>(v.shape[2]);
    const std::size_t places = v.size / (inputs * outputs);
    std::vector<float> to(v.size);
    for (std::size_t p = 0; p < places; ++p)
      for (std::size_t i = 0; i < inputs; ++i)
        for (std::size_t o = 0; o < outputs; ++o)
          to[(o * inputs + i) * places + p] = from[(p * inputs + i) * outputs + o];
    return floats(v.name, {v.shape[3], v.shape[2], v.shape[0], v.shape[1]}, to);
  }

  void relu(const Layer& layer) {
    if (has_relu(layer)) node("Relu", layer.name + "/relu", {at_});
  }

  void add(const Layer& layer, const Convolution& convolution, Extent input, std::size_t index) {
    to_nchw(layer);
    const auto [weights, biases] = variables_of(index);
    const std::string from = at_;
    window(node("Conv", layer.name, {from, convolution_weights(*weights), initializer(*biases)}),
           input, convolution.kernel, convolution.stride);
    relu(layer);
  }
  void add(const Layer& layer, const MaxPool& pool, Extent input) {
    to_nchw(layer);
    window(node("MaxPool", layer.name, {at_}), input, pool.size, pool.stride);
  }
  // ONNX divides alpha by the window's size, TensorFlow does not.
  void add(const Layer& layer, const LocalResponseNorm& norm) {
    to_nchw(layer);
    const int size = 2 * norm.depth_radius + 1;
    onnx::Node& added = node("LRN", layer.name, {at_});
    attribute(added, "size", size);
    attribute(added, "alpha", norm.alpha * size);
    attribute(added, "beta", norm.beta);
    attribute(added, "bias", norm.bias);
  }
  void add(const Layer& layer, const Dense&, Extent, std::size_t index) {
    to_vector(layer);
    const auto [weights, biases] = variables_of(index);
    node("Gemm", layer.name, {at_, initializer(*weights), initializer(*biases)});
    relu(layer);
  }
  void finish() {
    node("Identity", "logits", {at_});
    attribute(node("Softmax", "probabilities", {"logits"}), "axis", 1);
  }

  onnx::Graph& graph_;
  const VariableLayout& layout_;
  std::span<const float> variables_;
  std::string at_ = kImages;  // the value that the next node takes
  Order order_ = Order::nhwc;
};

void describe(onnx::ValueInfo& info, const std::string& name, onnx::Tensor::DataType type,
              const Sizes& sizes, const std::string& text) {
  info.set_name(name);
  info.set_doc_string(text);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t size : sizes) tensor->mutable_shape()->add_dim()->set_dim_value(size);
}

}  // namespace

std::string onnx_model(const Net& net, const VariableLayout& layout,
                       std::span<const float> variables, const OnnxOptions& options) {
  onnx::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("towers");
  model.set_producer_version(options.version);
  model.add_opset_import()->set_version(kOperatorSet);
  for (const auto& [key, value] : options.metadata) {
    onnx::Entry* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  onnx::Graph& graph = *model.mutable_graph();
  graph.set_name(net.name);
  Builder builder(graph, layout, variables);
  if (options.preprocessing) {
    if (net.input != Extent{kCropSide, kCropSide, 3})
      throw std::invalid_argument("preprocessing is for nets of 24 x 24 x 3 inputs");
    describe(*graph.add_input(), kImages, onnx::Tensor::UINT8, {kImageSide, kImageSide, 3},
             "RGB images, 0 to 255: [batch, row, column, channel]");
    builder.preprocess();
  } else {
    describe(*graph.add_input(), kImages, onnx::Tensor::FLOAT,
             {net.input.height, net.input.width, net.input.channels},
             "the central crop of each image, less its mean, divided by its standard deviation: "
             "[batch, row, column, channel]");
  }
  Extent extent = net.input;
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    builder.add(net.layers[i], extent, i);
    extent = output_extent(net.layers[i], extent);
  }
  for (const char* name : {"logits", "probabilities"})
    describe(*graph.add_output(), name, onnx::Tensor::FLOAT, {net.classes}, "");
  return model.SerializeAsString();
}

}  // namespace towers::data
