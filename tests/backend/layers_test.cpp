// Each layer kind in small nets of odd shapes. A convolution of kernel 1 comes first where the
// gradient that reaches the layer's input is to be seen too.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/backend/problem.h"

namespace towers::test {
namespace {

Layer first_convolution(int outputs) {
  return {"first", Convolution{.kernel = 1, .outputs = outputs, .relu = false}};
}

void check_on_all(const std::vector<Problem>& problems, int steps = 1) {
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    for (const Problem& problem : problems) {
      const Extent in = problem.net.input;
      CAPTURE(problem.net.name, problem.size(), in.height, in.width, in.channels);
      check_against_reference(row, backend, problem, steps);
    }
  });
}

TEST_CASE("convolutions of odd shapes") {
  std::vector<Problem> problems;
  for (const int kernel : {1, 3, 4, 5})
    for (const int stride : {1, 2, 3})
      for (const Extent in : {Extent{1, 1, 1}, Extent{2, 3, 17}, Extent{7, 5, 3}, Extent{6, 13, 5}})
        for (const int outputs : {1, 5, 17, 64}) {
          Net net = small_net(
              in, {first_convolution(in.channels),
                   {"conv", Convolution{.kernel = kernel, .stride = stride, .outputs = outputs}}});
          net.name = "kernel " + std::to_string(kernel) + ", stride " + std::to_string(stride) +
                     ", outputs " + std::to_string(outputs);
          problems.push_back(draw_problem(net, 1 + outputs % 4));
        }
  check_on_all(problems);
}

TEST_CASE("a convolution reads images of any number of channels") {
  std::vector<Problem> problems;
  for (const int channels : {1, 2, 3, 4, 16, 33})
    for (const bool relu : {false, true})
      problems.push_back(
          draw_problem(small_net({9, 8, channels},
                                 {{"conv", Convolution{.kernel = 5, .outputs = 12, .relu = relu}}}),
                       3));
  check_on_all(problems);
}

TEST_CASE("convolutions of images that are cut into many tiles, the last ones not whole") {
  std::vector<Problem> problems;
  for (const Extent in : {Extent{13, 9, 19}, Extent{8, 17, 33}, Extent{24, 23, 2}})
    for (const bool relu : {false, true}) {
      // The second one's input is the output of a relu, whose gradient is its own.
      Net net = small_net(in, {{"conv", Convolution{.kernel = 5, .outputs = 18}},
                               {"next", Convolution{.kernel = 5, .outputs = 7, .relu = relu}}});
      problems.push_back(draw_problem(net, 3));
    }
  check_on_all(problems);
}

TEST_CASE("a convolution's gradients over more images than are taken at once") {
  check_on_all({draw_problem(small_net({21, 22, 3}, {{"conv", Convolution{.outputs = 6}}}), 83)});
}

TEST_CASE("max pools of odd shapes, of negative values too") {
  std::vector<Problem> problems;
  for (const MaxPool pool :
       {MaxPool{3, 2}, MaxPool{2, 2}, MaxPool{3, 1}, MaxPool{5, 3}, MaxPool{1, 1}, MaxPool{4, 1}})
    for (const Extent in : {Extent{1, 1, 3}, Extent{2, 2, 5}, Extent{2, 3, 1}, Extent{7, 5, 3},
                            Extent{12, 13, 17}, Extent{8, 6, 33}}) {
      Net net = small_net(in, {first_convolution(in.channels), {"pool", pool}});
      net.name = "size " + std::to_string(pool.size) + ", stride " + std::to_string(pool.stride);
      problems.push_back(draw_problem(net, 3));
    }
  check_on_all(problems);
}

TEST_CASE("of equal values the first in row-major order wins a pool") {
  // A convolution with weights 1 and 0 copies the first channel, small integers full of ties; the
  // second channel differs everywhere, and its weight's gradient tells which of the equal values
  // won.
  for (const Extent in : {Extent{6, 7, 2}, Extent{6, 8, 2}}) {
    Net net = small_net(in, {{"first", Convolution{.kernel = 1, .outputs = 1, .relu = false}},
                             {"pool", MaxPool{3, 2}}});
    Problem problem = draw_problem(net, 4);
    const std::size_t weights = problem.layout.find("first/weights").offset;
    problem.variables[weights] = 1;
    problem.variables[weights + 1] = 0;
    problem.variables[problem.layout.find("first/biases").offset] = 0;
    for (std::size_t i = 0; i < problem.images.size(); i += 2)
      problem.images[i] = std::trunc(problem.images[i]);
    check_on_all({problem});
  }
}

TEST_CASE("local response norms of any radius and exponent") {
  std::vector<Problem> problems;
  for (const int radius : {0, 1, 2, 4, 9})
    for (const double beta : {0.5, 0.75, 1.0, 1.3})
      for (const Extent in :
           {Extent{1, 1, 1}, Extent{2, 3, 3}, Extent{3, 1, 17}, Extent{2, 5, 64}}) {
        Net net = small_net(
            in, {first_convolution(in.channels),
                 {"norm", LocalResponseNorm{
                              .depth_radius = radius, .bias = 1.5, .alpha = 0.2, .beta = beta}}});
        net.name = "radius " + std::to_string(radius) + ", beta " + std::to_string(beta);
        problems.push_back(draw_problem(net, 2));
      }
  check_on_all(problems);
}

TEST_CASE("dense layers of odd sizes") {
  std::vector<Problem> problems;
  for (const int inputs : {1, 3, 17, 100})
    for (const int outputs : {1, 5, 33})
      for (const int size : {1, 2, 7, 33})
        problems.push_back(draw_problem(
            small_net({1, 1, inputs}, {{"first", Dense{.outputs = inputs}},
                                       {"dense", Dense{.outputs = outputs, .relu = false}}}),
            size));
  check_on_all(problems);
}

TEST_CASE("any number of classes") {
  std::vector<Problem> problems;
  for (const int classes : {1, 2, 10, 17, 100})
    problems.push_back(
        draw_problem(small_net({1, 1, 9}, {{"dense", Dense{.outputs = 20}}}, classes), 5));
  check_on_all(problems);
}

TEST_CASE("layers in any order") {
  const Layer conv{"conv", Convolution{.kernel = 3, .outputs = 6}};
  const Layer plain{"plain", Convolution{.kernel = 3, .outputs = 6, .relu = false}};
  const Layer pool{"pool", MaxPool{3, 2}};
  const Layer norm{"norm", LocalResponseNorm{.depth_radius = 2, .alpha = 0.1}};
  const Layer dense{"dense", Dense{.outputs = 7}};
  const std::vector<std::vector<Layer>> orders{{conv, pool, norm},
                                               {conv, norm, pool},
                                               {norm, conv},
                                               {pool, plain, norm},
                                               {plain, pool},
                                               {dense, conv},
                                               {conv, plain, norm},
                                               {dense, norm},
                                               {pool, norm, pool},
                                               {norm},
                                               {pool},
                                               {}};
  std::vector<Problem> problems;
  for (const std::vector<Layer>& layers : orders) {
    Net net = small_net({8, 5, 4}, layers);
    net.name.clear();
    for (const Layer& layer : layers) net.name += layer.name + " ";
    problems.push_back(draw_problem(net, 3));
  }
  // Without a dense layer: a convolution's one position, or a pool's, is the logits.
  const Layer last{"last", Convolution{.kernel = 3, .outputs = 4, .relu = false}};
  problems.push_back(
      draw_problem({"convolution to loss", {1, 1, 5}, 4, {last, {"loss", SoftmaxLoss{}}}}, 3));
  problems.push_back(draw_problem(
      {"pool to loss", {2, 2, 5}, 4, {last, {"pool", MaxPool{2, 2}}, {"loss", SoftmaxLoss{}}}}, 3));
  check_on_all(problems);
}

TEST_CASE("the trainer's pool and norm, which a backend may do in one pass, in any order") {
  const Layer conv{"conv", Convolution{.kernel = 3, .outputs = 8}};
  const Layer plain{"plain", Convolution{.kernel = 3, .outputs = 8, .relu = false}};
  const Layer pool{"pool", MaxPool{3, 2}};
  const Layer norm{"norm", LocalResponseNorm{.depth_radius = 4, .alpha = 0.1}};
  const std::vector<std::vector<Layer>> orders{
      {conv, pool, norm},        {conv, norm, pool},       {plain, pool, norm},
      {plain, norm, pool},       {conv, pool, norm, pool}, {conv, norm, pool, norm},
      {conv, pool, norm, plain}, {pool, norm, conv},       {norm, pool, conv}};
  std::vector<Problem> problems;
  for (const std::vector<Layer>& layers : orders) {
    Net net = small_net({9, 6, 8}, layers);
    net.name.clear();
    for (const Layer& layer : layers) net.name += layer.name + " ";
    problems.push_back(draw_problem(net, 3));
  }
  check_on_all(problems);
}

TEST_CASE("weight decay on every layer that has weights") {
  const Parameters decayed{.weights_stddev = 0, .biases = 0, .weight_decay = 0.05};
  check_on_all({draw_problem(small_net({5, 5, 3}, {{"conv", Convolution{.outputs = 4}, decayed},
                                                   {"dense", Dense{.outputs = 6}, decayed}}),
                             4)},
               3);
}

TEST_CASE("several steps of a small net") {
  const Parameters decayed{.weights_stddev = 0, .biases = 0, .weight_decay = 0.01};
  const Net net =
      small_net({11, 9, 3},
                {{"conv1", Convolution{.kernel = 5, .outputs = 16}},
                 {"pool1", MaxPool{3, 2}},
                 {"norm1", LocalResponseNorm{.depth_radius = 4, .alpha = 0.05}},
                 {"conv2", Convolution{.kernel = 3, .stride = 2, .outputs = 24}},
                 {"norm2", LocalResponseNorm{.depth_radius = 1, .alpha = 0.1, .beta = 0.5}},
                 {"pool2", MaxPool{2, 1}},
                 {"local3", Dense{.outputs = 20}, decayed}},
                5);
  check_on_all({draw_problem(net, 1), draw_problem(net, 19)}, 6);
}

}  // namespace
}  // namespace towers::test
