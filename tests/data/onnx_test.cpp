// The ONNX model's structure. That runtimes of others compute the same with it is tests/interop's.
#include "data/onnx.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>

#include "core/models/cifar10.h"
#include "protos/onnx.pb.h"
#include "tests/data/output_support.h"

using namespace towers;
using namespace towers::data;
namespace onnx = towers::proto::onnx;

namespace {

onnx::Model model_of(const Net& net, const OnnxOptions& options = {}) {
  const VariableLayout layout(net);
  std::vector<float> variables(layout.size());
  std::iota(variables.begin(), variables.end(), 0.0f);
  const std::string bytes = onnx_model(net, layout, variables, options);
  onnx::Model model;
  REQUIRE(model.ParseFromString(bytes));
  return model;
}

const onnx::Node& node_of(const onnx::Model& model, const std::string& name) {
  for (const onnx::Node& node : model.graph().node())
    if (node.name() == name) return node;
  throw std::out_of_range("no node " + name);
}

const onnx::Attribute& attribute_of(const onnx::Node& node, const std::string& name) {
  for (const onnx::Attribute& attribute : node.attribute())
    if (attribute.name() == name) return attribute;
  throw std::out_of_range("no attribute " + name);
}

std::vector<std::int64_t> ints(const onnx::Node& node, const std::string& name) {
  const auto& values = attribute_of(node, name).ints();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("every value of the ONNX graph is made once, before it is used") {
  for (const bool preprocessing : {false, true}) {
    const onnx::Model model = model_of(cifar10_net(), {.preprocessing = preprocessing});
    CHECK(model.opset_import(0).version() == 17);
    const onnx::Graph& graph = model.graph();
    std::set<std::string> known{graph.input(0).name()};
    for (const auto& tensor : graph.initializer()) CHECK(known.insert(tensor.name()).second);
    for (const auto& node : graph.node()) {
      for (const auto& input : node.input()) CHECK(known.count(input) == 1);
      for (const auto& output : node.output()) CHECK(known.insert(output).second);
    }
    for (const auto& output : graph.output()) CHECK(known.count(output.name()) == 1);
    const auto& type = graph.input(0).type().tensor_type();
    CHECK(type.elem_type() == (preprocessing ? onnx::Tensor::UINT8 : onnx::Tensor::FLOAT));
    CHECK(type.shape().dim(0).dim_param() == "batch");
    CHECK(type.shape().dim(1).dim_value() == (preprocessing ? 32 : 24));
  }
}

TEST_CASE("padding, windows and the norm's constants are TensorFlow's in ONNX's terms") {
  const onnx::Model model = model_of(cifar10_net());
  CHECK(ints(node_of(model, "conv1"), "pads") == std::vector<std::int64_t>{2, 2, 2, 2});
  // 24 rows, windows of 3 at a stride of 2: one row of padding, at the bottom.
  CHECK(ints(node_of(model, "pool1"), "pads") == std::vector<std::int64_t>{0, 0, 1, 1});
  CHECK(ints(node_of(model, "pool1"), "strides") == std::vector<std::int64_t>{2, 2});
  const onnx::Node& norm = node_of(model, "norm1");
  CHECK(attribute_of(norm, "size").i() == 9);
  CHECK(attribute_of(norm, "alpha").f() == Approx(0.001));  // ONNX divides it by 9
  CHECK(attribute_of(norm, "beta").f() == 0.75f);
  CHECK_THROWS_AS(node_of(model, "softmax_linear/relu"), std::out_of_range);
  CHECK(node_of(model, "local4/relu").op_type() == "Relu");
}

TEST_CASE("convolution weights stand with outputs first") {
  const Net net = test::small_net();
  const onnx::Model model = model_of(net);
  const auto& weights = model.graph().initializer(0);
  REQUIRE(weights.name() == "conv1/weights");
  CHECK(std::vector<std::int64_t>(weights.dims().begin(), weights.dims().end()) ==
        std::vector<std::int64_t>{4, 2, 3, 3});
  std::vector<float> values(4 * 2 * 3 * 3);
  REQUIRE(weights.raw_data().size() == values.size() * sizeof(float));
  std::memcpy(values.data(), weights.raw_data().data(), weights.raw_data().size());
  // Of output 1, input 1, row 2, column 0: element ((2 * 3 + 0) * 2 + 1) * 4 + 1 of HWIO.
  CHECK(values[((1 * 2 + 1) * 3 + 2) * 3 + 0] == 53);
}

TEST_CASE("nets that ONNX or the preprocessing does not fit are refused") {
  CHECK_THROWS_AS(model_of(test::small_net(), {.preprocessing = true}), std::invalid_argument);
  Net net = test::small_net();
  std::swap(net.layers[2], net.layers[3]);  // a norm behind a dense layer
  CHECK_THROWS_AS(model_of(net), std::invalid_argument);
}
