// Local response normalization on the device against the reference and TensorFlow's values.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"
#include "tests/reference/golden.h"
#include "tests/reference/layers.h"
#include "tests/reference/safetensors.h"

namespace towers::cuda::test {
namespace {

struct Normalized {
  std::vector<float> output, d_input;
};

Normalized norm_on_device(const LocalResponseNorm& norm, int channels, const std::vector<float>& x,
                          const std::vector<float>& dy, bool relu_input = false,
                          std::size_t shift = 0) {
  TestDevice device;
  const std::size_t pixels = x.size() / static_cast<std::size_t>(channels);
  const float* input = device.put(x, shift);
  float* output = device.room<float>(x.size(), shift);
  float* d_input = device.room<float>(x.size(), shift);
  local_response_norm(device.stream(), norm, pixels, channels, input, output);
  local_response_norm_backward(device.stream(), norm, pixels, channels, input,
                               device.put(dy, shift), relu_input, d_input);
  return {device.get(output, x.size()), device.get(d_input, x.size())};
}

void check(const LocalResponseNorm& norm, int pixels, int channels) {
  CAPTURE(norm.depth_radius, norm.beta, pixels, channels);
  const Extent in{1, pixels, channels};
  const std::vector<float> x = values_of(in.size(), 1, 3), dy = values_of(in.size(), 2);
  const std::vector<double> wide = reference::doubles(x), wide_dy = reference::doubles(dy);
  std::vector<double> y(x.size()), dx(x.size());
  reference::local_response_norm_forward(norm, in, wide.data(), y.data());
  reference::local_response_norm_backward(norm, in, wide.data(), wide_dy.data(), dx.data());
  const Normalized got = norm_on_device(norm, channels, x, dy);
  CHECK(reference::relative_error(got.output, y) < 1e-6);
  CHECK(reference::relative_error(got.d_input, dx) < 2e-6);
}

TEST_CASE("local response norms of any radius, exponent and number of channels on the device") {
  for (const int radius : {0, 1, 4, 9})
    for (const double beta : {0.5, 0.75, 1.3})
      for (const int channels : {1, 3, 4, 8, 17, 64}) {
        check({radius, 1.5, 0.2, beta}, 1, channels);
        check({radius, 1.5, 0.2, beta}, 19, channels);
      }
}

TEST_CASE("the trainer's local response norm, and one wider than a block") {
  check({}, 37, 64);
  check({4, 2, 0.3, 0.75}, 3, 1024);
  check({4, 2, 0.3, 0.75}, 2, 1028);  // more groups of four than a block has threads
  check({4, 2, 0.3, 0.75}, 2, 1031);
}

TEST_CASE("groups of four channels give the bits of single ones") {
  const LocalResponseNorm norm{4, 1, 0.1, 0.75};
  for (const int channels : {4, 8, 12, 64}) {
    const std::size_t count = static_cast<std::size_t>(channels) * 21;
    const std::vector<float> x = values_of(count, 3, 2), dy = values_of(count, 4);
    const Normalized groups = norm_on_device(norm, channels, x, dy, true);
    const Normalized single = norm_on_device(norm, channels, x, dy, true, 1);
    CHECK(reference::relative_error(groups.output, single.output) < 1e-7);
    CHECK(reference::relative_error(groups.d_input, single.d_input) < 1e-7);
  }
}

TEST_CASE("the relu before a local response norm is undone on the way") {
  for (const int channels : {8, 7}) {
    std::vector<float> x = values_of(static_cast<std::size_t>(5 * channels), 6);
    for (float& value : x) value = std::max(value, 0.0f);
    const std::vector<float> dy = values_of(x.size(), 7);
    const LocalResponseNorm norm{4, 1, 0.5, 0.75};
    const Normalized with = norm_on_device(norm, channels, x, dy, true);
    const Normalized without = norm_on_device(norm, channels, x, dy, false);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(with.d_input[i] == (x[i] > 0 ? without.d_input[i] : 0.0f));
      CHECK(without.d_input[i] != 0);
    }
  }
}

TEST_CASE("NaN and infinity spread over their window and no further") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
    for (const int channels : {32, 33}) {  // in groups of four and one by one
      std::vector<float> x = values_of(static_cast<std::size_t>(2 * channels), 8);
      x[13] = poison;
      const std::vector<float> dy = values_of(x.size(), 9);
      const Normalized got = norm_on_device({4, 1, 0.5, 0.75}, channels, x, dy);
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(poison, channels, i);
        CHECK(std::isfinite(got.output[i]) == (i < 9 || i > 17));
        // The products are not finite in the window, and the windows of others reach into it.
        CHECK(std::isfinite(got.d_input[i]) == (i < 5 || i > 21));
      }
    }
}

TEST_CASE("local response norms on the device agree with TensorFlow's") {
  const reference::Safetensors file(reference::golden_dir() / "layers.safetensors");
  int cases = 0;
  for (const std::string& full : file.names()) {
    if (!full.starts_with("local_response_norm/") || !full.ends_with("/x")) continue;
    const std::string name = full.substr(0, full.size() - 2);
    INFO(name);
    ++cases;
    const std::vector<float> p = file.floats(name + "/parameters");
    const LocalResponseNorm norm{static_cast<int>(p[0]), static_cast<double>(p[1]),
                                 static_cast<double>(p[2]), static_cast<double>(p[3])};
    const Normalized got = norm_on_device(norm, static_cast<int>(file.shape(full)[3]),
                                          file.floats(full), file.floats(name + "/dy"));
    CHECK(reference::relative_error(got.output, file.floats(name + "/y")) < 1e-6);
    CHECK(reference::relative_error(got.d_input, file.floats(name + "/dx")) < 2e-6);
  }
  CHECK(cases > 0);
}

}  // namespace
}  // namespace towers::cuda::test
