// A whole net's gradients against differences of its loss.

#include <catch2/catch.hpp>

#include "tests/reference/compare.h"
#include "tests/reference/gradient_check.h"
#include "tests/reference/net.h"

namespace towers::reference {
namespace {

// Every kind of layer, odd sizes, weight decay on two of them.
Net small_net() {
  return Net{.name = "small",
             .input = {7, 9, 3},
             .classes = 4,
             .layers = {{"conv1", Convolution{.kernel = 3, .outputs = 5}, {0.5, 0.1, 0.01}},
                        {"norm1", LocalResponseNorm{2, 1.0, 0.2, 0.75}},
                        {"pool1", MaxPool{3, 2}},
                        {"conv2",
                         Convolution{.kernel = 4, .stride = 2, .outputs = 6, .relu = false},
                         {0.3, 0, 0}},
                        {"pool2", MaxPool{2, 1}},
                        {"local3", Dense{.outputs = 7}, {0.5, 0.1, 0.02}},
                        {"softmax_linear", Dense{.outputs = 4, .relu = false}, {0.5, 0, 0}},
                        {"loss", SoftmaxLoss{}}}};
}

Batch batch_for(const Net& net, int size) {
  Batch batch;
  batch.images = random_values(static_cast<std::size_t>(size) * net.input.size(), 21);
  for (int i = 0; i < size; ++i) batch.labels.push_back(i % net.classes);
  return batch;
}

std::vector<double> make_variables(const Net& net) {
  const VariableLayout layout(net);
  std::vector<float> flat(layout.size());
  initialize_variables(layout, 3, flat);
  return {flat.begin(), flat.end()};
}

TEST_CASE("a net's gradients are those of its loss under the same decisions") {
  const Net net = small_net();
  const Batch batch = batch_for(net, 11);
  std::vector<double> variables = make_variables(net);
  const Pass pass = forward_backward(net, variables, batch);
  check_gradient(
      variables, pass.gradients,
      [&] { return forward_backward(net, variables, batch, &pass.decisions).losses.total; }, 400);
}

TEST_CASE("a net's gradients are those of its loss away from kinks") {
  const Net net = small_net();
  const Batch batch = batch_for(net, 2);
  std::vector<double> variables = make_variables(net);
  const Pass pass = forward_backward(net, variables, batch);
  int checked = 0, kinks = 0;
  for (std::size_t i = 0; i < variables.size(); i += 3) {
    const double step = 1e-5, value = variables[i];
    variables[i] = value + step;
    const Pass above = forward_backward(net, variables, batch);
    variables[i] = value - step;
    const Pass below = forward_backward(net, variables, batch);
    variables[i] = value;
    if (above.decisions.relu != below.decisions.relu ||
        above.decisions.pool != below.decisions.pool) {
      ++kinks;
      continue;
    }
    const double expected = (above.losses.total - below.losses.total) / (2 * step);
    INFO("value " << i);
    REQUIRE(std::abs(pass.gradients[i] - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
    ++checked;
  }
  CHECK(checked > 20 * kinks);
}

TEST_CASE("decisions follow from the outputs of the convolution and dense layers") {
  const Net net = small_net();
  const Batch batch = batch_for(net, 3);
  const Pass pass = forward_backward(net, make_variables(net), batch);
  std::vector<std::vector<float>> outputs;
  for (const std::vector<double>& o : pass.outputs) outputs.emplace_back(o.begin(), o.end());
  const Decisions decisions = decisions_of(net, batch, [&](const std::string& layer) {
    std::size_t l = 0;
    while (net.layers[l].name != layer) ++l;
    return std::span<const float>(outputs[l]);
  });
  CHECK(decisions.relu == pass.decisions.relu);
  CHECK(decisions.pool == pass.decisions.pool);
}

TEST_CASE("forced decisions decide, and what they contradict is told") {
  const Net net = small_net();
  const Batch batch = batch_for(net, 1);
  const std::vector<double> variables = make_variables(net);
  Decisions decisions = forward_backward(net, variables, batch).decisions;
  CHECK(forward_backward(net, variables, batch, &decisions).contradiction == 0);
  const std::size_t local3 = 5;
  for (std::uint8_t& passed : decisions.relu[local3]) passed = 0;
  const Pass pass = forward_backward(net, variables, batch, &decisions);
  CHECK(pass.outputs[local3] == std::vector<double>(7, 0.0));
  CHECK(pass.contradiction > 0.1);
  const Variable biases = VariableLayout(net).find("local3/biases");
  for (std::size_t i = 0; i < biases.size; ++i) CHECK(pass.gradients[biases.offset + i] == 0);
}

TEST_CASE("a pool's winner that is not the largest is told") {
  const Net net{"pool", {1, 2, 1}, 1, {{"pool", MaxPool{2, 2}}, {"loss", SoftmaxLoss{}}}};
  const Batch batch{{4, 3}, {0}};
  Decisions decisions = forward_backward(net, {}, batch).decisions;
  decisions.pool[0][0] = 1;
  const Pass pass = forward_backward(net, {}, batch, &decisions);
  CHECK(pass.outputs[0] == std::vector<double>{3});
  CHECK(pass.contradiction == 0.25);
}

TEST_CASE("the weight losses are the decay times half the squares, in the layout's order") {
  const Net net = small_net();
  const std::vector<double> variables = make_variables(net);
  const Pass pass = forward_backward(net, variables, batch_for(net, 1));
  std::vector<double> expected;
  const VariableLayout layout(net);
  for (const char* name : {"conv1/weights", "local3/weights"}) {
    const Variable& v = layout.find(name);
    double squares = 0;
    for (std::size_t i = 0; i < v.size; ++i)
      squares += variables[v.offset + i] * variables[v.offset + i];
    expected.push_back((name[0] == 'c' ? 0.005 : 0.01) * squares);
  }
  CHECK(relative_error(pass.losses.weight_losses, expected) < 1e-14);
  CHECK(pass.losses.total ==
        Approx(pass.losses.cross_entropy + expected[0] + expected[1]).epsilon(1e-14));
}

TEST_CASE("an update is plain descent, then the average of the new value") {
  std::vector<double> variables{1, 2}, averages{0, 2};
  apply_gradients(std::vector<double>{2, -4}, 0.25, 0.75, variables, averages);
  CHECK(variables == std::vector<double>{0.5, 3});
  CHECK(averages == std::vector<double>{0.125, 2.25});
}

}  // namespace
}  // namespace towers::reference
