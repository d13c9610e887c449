// Figures of repeated measurements, and the arithmetic of a net.
#include "core/statistics.h"

#include <catch2/catch.hpp>

#include "core/models/cifar10.h"
#include "core/operations.h"

using namespace towers;

TEST_CASE("the median is the middle, or the mean of the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({8, 1, 4, 2}) == 3);
}

TEST_CASE("rates are summed up as tf_cnn_benchmarks does") {
  // Rates 100, 50, 25, 200: worked out by its formulas (numpy's mean, std and median).
  const std::vector<double> seconds{1, 2, 4, 0.5};
  const RateStatistics r = rate_statistics(100, seconds);
  CHECK(r.mean == Approx(100 / 1.875));
  CHECK(r.median == 75);
  CHECK(r.lowest == 25);
  CHECK(r.highest == 200);
  CHECK(r.uncertainty == Approx(33.5119));   // population deviation 67.0238, by 2
  CHECK(r.jitter == Approx(1.4826 * 37.5));  // distances 25, 25, 50, 125
}

TEST_CASE("equal repetitions have no spread") {
  const RateStatistics r = rate_statistics(64, std::vector<double>{0.5, 0.5, 0.5});
  CHECK(r.mean == 128);
  CHECK(r.median == 128);
  CHECK(r.uncertainty == 0);
  CHECK(r.jitter == 0);
}

TEST_CASE("one repetition is its own mean") {
  const RateStatistics r = rate_statistics(10, std::vector<double>{2});
  CHECK(r.mean == 5);
  CHECK(r.lowest == 5);
  CHECK(r.highest == 5);
  CHECK(r.uncertainty == 0);
}

TEST_CASE("the arithmetic of a step is counted as direct convolution") {
  const Net net = cifar10_net();
  const std::vector<LayerOperations> layers = layer_operations(net);
  REQUIRE(layers.size() == net.layers.size());
  CHECK(layers[0].forward == 2.0 * 24 * 24 * 5 * 5 * 3 * 64);
  CHECK(layers[0].backward == layers[0].forward);  // nobody asks for the images' gradient
  CHECK(layers[1].step() == 0);                    // a pool
  double forward = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    forward += layers[l].forward;
    if (net.layers[l].name == "conv2") {
      CHECK(layers[l].forward == 2.0 * 12 * 12 * 5 * 5 * 64 * 64);
      CHECK(layers[l].backward == 2 * layers[l].forward);
    }
    if (net.layers[l].name == "local3") CHECK(layers[l].forward == 2.0 * 2304 * 384);
  }
  CHECK(forward == Approx(2 * 18.5e6).epsilon(0.01));
  CHECK(sum_of_steps(layer_operations(net)) == Approx(105e6).epsilon(0.01));
}

TEST_CASE("a layer's bytes are its activations, gradients and variables, once a pass") {
  const Net net = cifar10_net();
  const std::vector<LayerOperations> bytes = layer_bytes(net, 10);
  REQUIRE(bytes.size() == net.layers.size());
  const double images = 10.0 * 24 * 24 * 3, out = 10.0 * 24 * 24 * 64,
               weights = 5 * 5 * 3 * 64 + 64;
  CHECK(bytes[0].forward == 4 * (images + weights + out));
  CHECK(bytes[0].backward == 4 * (images + out + 2 * weights));  // nobody asks for d_images
  const double pooled = 10.0 * 12 * 12 * 64;
  CHECK(bytes[1].forward == 4 * (out + pooled));
  CHECK(bytes[1].backward == 4 * (2 * out + pooled));
}
