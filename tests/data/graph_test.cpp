// The graph: well formed, and what a person looks for is in it.

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "core/models/cifar10.h"
#include "core/variables.h"
#include "data/event_file.h"
#include "protos/graph.pb.h"
#include "tests/data/output_support.h"

namespace towers::data {
namespace {

const std::string kGpu = "/job:localhost/replica:0/task:0/device:GPU:";

struct Graph {
  explicit Graph(int towers) {
    std::vector<std::string> devices;
    for (int t = 0; t < towers; ++t) devices.push_back(kGpu + std::to_string(t));
    graph.ParseFromString(graph_def(cifar10_net(0.004), devices, 128));
    for (const auto& node : graph.node()) nodes[node.name()] = &node;
  }
  proto::GraphDef graph;
  std::map<std::string, const proto::NodeDef*> nodes;
};

TEST_CASE("Every node's name is its own and every input is there, before it") {
  const Graph graph(3);
  CHECK(graph.nodes.size() == static_cast<std::size_t>(graph.graph.node_size()));
  std::set<std::string> before;
  for (const auto& node : graph.graph.node()) {
    CHECK_FALSE(node.op().empty());
    for (const std::string& input : node.input()) {
      std::string name = input.substr(input.front() == '^' ? 1 : 0);
      name = name.substr(0, name.find(':'));
      INFO(node.name() << " needs " << input);
      CHECK(before.count(name) == 1);
    }
    before.insert(node.name());
  }
}

TEST_CASE("Towers, layers and devices are there") {
  const Graph graph(2);
  for (int t = 0; t < 2; ++t) {
    const std::string tower = "tower_" + std::to_string(t);
    for (const char* layer :
         {"/conv1/Conv2D", "/conv1/conv1", "/pool1", "/norm1", "/conv2/conv2", "/local3/MatMul",
          "/local3/weight_loss", "/local4/local4", "/softmax_linear/softmax_linear",
          "/cross_entropy", "/total_loss", "/gradients/conv1/weights"}) {
      INFO(tower << layer);
      REQUIRE(graph.nodes.count(tower + layer) == 1);
      CHECK(graph.nodes.at(tower + layer)->device() == kGpu + std::to_string(t));
    }
    CHECK(graph.nodes.at(tower + "/conv1/Conv2D")->input(1) == "conv1/weights/read");
  }
  CHECK(graph.nodes.count("tower_2/pool1") == 0);
  CHECK(graph.nodes.at("input/batch")->device().ends_with("device:CPU:0"));
  CHECK(graph.nodes.count("learning_rate") == 1);
}

TEST_CASE(
    "Each variable is shared, averaged over the towers, applied and followed by its average") {
  const Graph graph(2);
  const VariableLayout layout(cifar10_net(0.004));
  for (const Variable& v : layout.variables()) {
    INFO(v.name);
    const auto& variable = *graph.nodes.at(v.name);
    CHECK(variable.op() == "VariableV2");
    CHECK(variable.attr().at("shape").shape().dim_size() == static_cast<int>(v.shape.size()));
    CHECK(graph.nodes.at("average_gradients/" + v.name)->input_size() == 2);
    CHECK(graph.nodes.at("apply_gradients/" + v.name)->input(2) == "average_gradients/" + v.name);
    CHECK(graph.nodes.at("moving_averages/" + v.name)->input(0) ==
          v.name + "/ExponentialMovingAverage");
  }
}

TEST_CASE("Layers show their windows and constants") {
  const Graph graph(1);
  const auto& pool = graph.nodes.at("tower_0/pool1")->attr();
  const std::vector<int> ksize(pool.at("ksize").list().i().begin(),
                               pool.at("ksize").list().i().end());
  CHECK(ksize == std::vector<int>{1, 3, 3, 1});
  CHECK(pool.at("strides").list().i(1) == 2);
  CHECK(pool.at("padding").s() == "SAME");
  CHECK(graph.nodes.at("tower_0/conv1/Conv2D")->attr().at("strides").list().i(1) == 1);
  CHECK(graph.nodes.at("tower_0/norm1")->attr().at("depth_radius").i() == 4);
  CHECK(graph.nodes.at("tower_0/norm1")->attr().at("beta").f() == 0.75f);
}

TEST_CASE("Edges carry the shapes of a batch") {
  const Graph graph(1);
  const auto& shape = graph.nodes.at("tower_0/pool1")->attr().at("_output_shapes").list().shape(0);
  REQUIRE(shape.dim_size() == 4);
  const std::vector<std::int64_t> want{128, 12, 12, 64};
  for (int d = 0; d < 4; ++d) CHECK(shape.dim(d).size() == want[static_cast<std::size_t>(d)]);
}

}  // namespace
}  // namespace towers::data
