#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/variables.h"
#include "data/event_file.h"
#include "protos/graph.pb.h"

namespace towers::data {
namespace {

constexpr const char* kHost = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr int kProducer = 22;  // of GraphDefs with these ops (TensorFlow 1.x)

using Shape = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

std::string control_input(const std::string& name) {
  std::string input = "^";
  input += name;
  return input;
}

void set_shape(proto::TensorShapeProto& to, const Shape& shape) {
  for (const std::int64_t d : shape) to.add_dim()->set_size(d);
}

// Builds the graph node by node: the whole is drawn as the original trainer's graph is, so that
// who knows that one finds his way, with one node where it has a dozen of plumbing.
class Graph {
 public:
  Graph(const Net& net, const Names& device_of_tower, int batch_size)
      : net_(net), devices_(device_of_tower), batch_(batch_size), layout_(net) {}

  std::string build() {
    graph_.mutable_versions()->set_producer(kProducer);
    add_variables();
    add_input();
    for (std::size_t t = 0; t < devices_.size(); ++t) add_tower(t);
    add_update();
    return graph_.SerializeAsString();
  }

 private:
  // Adds a node; `shape` is its output's, which TensorBoard writes on the edges. Returns its name.
  std::string add(const std::string& name, const std::string& op, const Names& inputs,
                  const std::string& device, const Shape& shape,
                  proto::DataType type = proto::DT_FLOAT) {
    proto::NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    node->set_device(device);
    (*node->mutable_attr())["T"].set_type(type);
    set_shape(*(*node->mutable_attr())["_output_shapes"].mutable_list()->add_shape(), shape);
    return name;
  }

  // Of the node added last.
  google::protobuf::Map<std::string, proto::AttrValue>& attributes() {
    return *graph_.mutable_node(graph_.node_size() - 1)->mutable_attr();
  }

  // NHWC, square.
  void set_window(const std::string& name, int side) {
    for (const int n : {1, side, side, 1}) attributes()[name].mutable_list()->add_i(n);
  }

  void add_variable(const std::string& name, const Shape& shape) {
    add(name, "VariableV2", {}, devices_.front(), shape);
    attributes().erase("T");
    attributes()["dtype"].set_type(proto::DT_FLOAT);
    set_shape(*attributes()["shape"].mutable_shape(), shape);
    attributes()["container"].set_s("");
    attributes()["shared_name"].set_s("");
  }

  void add_variables() {
    for (const Variable& v : layout_.variables()) {
      add_variable(v.name, v.shape);
      add(v.name + "/read", "Identity", {v.name}, devices_.front(), v.shape);
      add_variable(v.name + "/ExponentialMovingAverage", v.shape);
    }
    add_variable("global_step", {});
  }

  void add_input() {
    const Shape image{net_.input.height, net_.input.width, net_.input.channels};
    std::string last = add("input/read_records", "ReaderReadV2", {}, kHost, {}, proto::DT_STRING);
    last = add("input/decode", "DecodeRaw", {last}, kHost, {32, 32, 3}, proto::DT_UINT8);
    const std::string label = add("input/label", "Cast", {last}, kHost, {}, proto::DT_INT32);
    for (const auto& [name, op] : {std::pair{"random_crop", "Slice"},
                                   {"random_flip_left_right", "ReverseV2"},
                                   {"random_contrast", "AdjustContrastv2"},
                                   {"standardize", "PerImageStandardization"}})
      last = add(std::string("input/") + name, op, {last}, kHost, image);
    add("input/batch", "QueueDequeueManyV2", {last, label}, kHost, batch_of(net_.input));
  }

  Shape batch_of(Extent extent) const {
    Shape shape{batch_};
    if (extent.height != 1 || extent.width != 1)
      shape.insert(shape.end(), {extent.height, extent.width});
    shape.push_back(extent.channels);
    return shape;
  }

  void add_tower(std::size_t t) {
    scope_ = "tower_" + std::to_string(t) + "/";
    device_ = devices_[t];
    losses_.clear();
    std::string last = "input/batch";
    Extent extent = net_.input;
    for (const Layer& layer : net_.layers) {
      const Extent before = extent;
      extent = output_extent(layer, before);
      last = std::visit([&](const auto& op) { return add_layer(layer, op, last, before, extent); },
                        layer.op);
    }
    const std::string total = add(scope_ + "total_loss", "AddN", losses_, device_, {});
    for (const Variable& v : layout_.variables())
      add(scope_ + "gradients/" + v.name, "SymbolicGradient", {total, v.name + "/read"}, device_,
          v.shape);
  }

  std::string add_layer(const Layer& layer, const Convolution& op, const std::string& input, Extent,
                        Extent extent) {
    const std::string product =
        add(scope_ + layer.name + "/Conv2D", "Conv2D", {input, layer.name + "/weights/read"},
            device_, batch_of(extent));
    set_window("strides", op.stride);
    attributes()["padding"].set_s("SAME");
    return add_bias_and_relu(layer, op.relu, product, extent);
  }

  std::string add_layer(const Layer& layer, const Dense& op, const std::string& input,
                        Extent before, Extent extent) {
    const bool flat = before.height == 1 && before.width == 1;
    const std::string rows = flat
                                 ? input
                                 : add(scope_ + layer.name + "/Reshape", "Reshape", {input},
                                       device_, {batch_, static_cast<std::int64_t>(before.size())});
    const std::string product =
        add(scope_ + layer.name + "/MatMul", "MatMul", {rows, layer.name + "/weights/read"},
            device_, batch_of(extent));
    return add_bias_and_relu(layer, op.relu, product, extent);
  }

  std::string add_layer(const Layer& layer, const MaxPool& op, const std::string& input, Extent,
                        Extent extent) {
    std::string name = add(scope_ + layer.name, "MaxPool", {input}, device_, batch_of(extent));
    set_window("ksize", op.size);
    set_window("strides", op.stride);
    attributes()["padding"].set_s("SAME");
    return name;
  }

  std::string add_layer(const Layer& layer, const LocalResponseNorm& op, const std::string& input,
                        Extent, Extent extent) {
    std::string name = add(scope_ + layer.name, "LRN", {input}, device_, batch_of(extent));
    attributes()["depth_radius"].set_i(op.depth_radius);
    attributes()["bias"].set_f(static_cast<float>(op.bias));
    attributes()["alpha"].set_f(static_cast<float>(op.alpha));
    attributes()["beta"].set_f(static_cast<float>(op.beta));
    return name;
  }

  std::string add_layer(const Layer& layer, const SoftmaxLoss&, const std::string& input, Extent,
                        Extent) {
    const std::string each =
        add(scope_ + layer.name + "/per_example", "SparseSoftmaxCrossEntropyWithLogits",
            {input, "input/batch:1"}, device_, {batch_});
    const std::string mean = add(scope_ + layer.name, "Mean", {each}, device_, {});
    losses_.push_back(mean);
    return mean;
  }

  std::string add_bias_and_relu(const Layer& layer, bool relu, const std::string& product,
                                Extent extent) {
    if (layer.parameters.weight_decay != 0)
      losses_.push_back(add(scope_ + layer.name + "/weight_loss", "L2Loss",
                            {layer.name + "/weights/read"}, device_, {}));
    const std::string sum =
        add(scope_ + layer.name + (relu ? "/BiasAdd" : "/" + layer.name), "BiasAdd",
            {product, layer.name + "/biases/read"}, device_, batch_of(extent));
    return relu ? add(scope_ + layer.name + "/" + layer.name, "Relu", {sum}, device_,
                      batch_of(extent))
                : sum;
  }

  void add_update() {
    const std::string& device = devices_.front();
    const std::string rate = add("learning_rate", "ExponentialDecay", {"global_step"}, kHost, {});
    Names applied;
    for (const Variable& v : layout_.variables()) {
      Names gradients;
      for (std::size_t t = 0; t < devices_.size(); ++t)
        gradients.push_back("tower_" + std::to_string(t) + "/gradients/" + v.name);
      const std::string mean =
          add("average_gradients/" + v.name, "Mean", gradients, device, v.shape);
      applied.push_back(add("apply_gradients/" + v.name, "ApplyGradientDescent",
                            {v.name, rate, mean}, device, v.shape));
    }
    Names after;
    for (const std::string& name : applied) after.push_back(control_input(name));
    Names increment{"global_step"};
    increment.insert(increment.end(), after.begin(), after.end());
    Names last{
        control_input(add("apply_gradients/global_step", "AssignAdd", increment, device, {}))};
    for (const Variable& v : layout_.variables())
      last.push_back(control_input(add("moving_averages/" + v.name, "AssignSub",
                                       {v.name + "/ExponentialMovingAverage", v.name + "/read",
                                        control_input("apply_gradients/" + v.name)},
                                       device, v.shape)));
    add("train", "NoOp", last, device, {});
  }

  const Net& net_;
  const Names& devices_;
  const std::int64_t batch_;
  const VariableLayout layout_;
  proto::GraphDef graph_;
  std::string scope_, device_;  // of the tower being added
  Names losses_;
};

}  // namespace

std::string graph_def(const Net& net, const std::vector<std::string>& device_of_tower,
                      int batch_size) {
  return Graph(net, device_of_tower, batch_size).build();
}

}  // namespace towers::data
