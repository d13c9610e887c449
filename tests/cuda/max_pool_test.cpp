// Max pooling on the device against the reference's loops and TensorFlow's values.

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/net.h"
#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"
#include "tests/reference/golden.h"
#include "tests/reference/layers.h"
#include "tests/reference/safetensors.h"

namespace towers::cuda::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

WindowShape shape_of(const MaxPool& pool, Extent in, int batch) {
  return {batch,
          in,
          output_extent(Layer{"", pool}, in),
          pool.size,
          pool.stride,
          same_padding_before(in.height, pool.size, pool.stride),
          same_padding_before(in.width, pool.size, pool.stride)};
}

struct Pooled {
  std::vector<float> output, d_input;
  std::vector<std::uint8_t> winners;
};

Pooled pool_on_device(const MaxPool& pool, Extent in, int batch, const std::vector<float>& x,
                      const std::vector<float>& dy, bool relu_input = false,
                      std::size_t shift = 0) {
  TestDevice device;
  const WindowShape shape = shape_of(pool, in, batch);
  const std::size_t outputs = static_cast<std::size_t>(batch) * shape.output.size();
  const float* input = device.put(x, shift);
  float* output = device.room<float>(outputs, shift);
  std::uint8_t* winners = device.room<std::uint8_t>(outputs, shift);
  float* d_input = device.put(std::vector<float>(x.size(), kNaN), shift);  // written whole
  max_pool(device.stream(), shape, input, output, winners, relu_input);
  max_pool_backward(device.stream(), shape, device.put(dy, shift), winners, d_input);
  return {device.get(output, outputs), device.get(d_input, x.size()), device.get(winners, outputs)};
}

// As the reference has it. Gradients are added in the order of the windows, as on the device.
Pooled pool_plainly(const MaxPool& pool, Extent in, int batch, const std::vector<float>& x,
                    const std::vector<float>& dy) {
  const WindowShape shape = shape_of(pool, in, batch);
  Pooled result;
  result.d_input.assign(x.size(), 0);
  for (int image = 0; image < batch; ++image) {
    const std::size_t from = static_cast<std::size_t>(image) * in.size();
    const std::vector<double> values(x.begin() + static_cast<std::ptrdiff_t>(from),
                                     x.begin() + static_cast<std::ptrdiff_t>(from + in.size()));
    std::vector<std::int32_t> winner(shape.output.size());
    reference::max_pool_winners(pool, in, values.data(), winner.data());
    for (const std::int32_t at : winner) {
      const std::size_t i = from + static_cast<std::size_t>(at);
      result.d_input[i] += dy[result.output.size()];
      result.output.push_back(x[i]);
    }
  }
  return result;
}

void check(const MaxPool& pool, Extent in, int batch, const std::vector<float>& x,
           std::size_t shift = 0) {
  CAPTURE(pool.size, pool.stride, in.height, in.width, in.channels, batch, shift);
  const std::vector<float> dy =
      values_of(static_cast<std::size_t>(batch) * output_extent(Layer{"", pool}, in).size(), 2);
  const Pooled want = pool_plainly(pool, in, batch, x, dy);
  const Pooled got = pool_on_device(pool, in, batch, x, dy, false, shift);
  CHECK(same_bits(got.output, want.output));
  CHECK(same_bits(got.d_input, want.d_input));
}

TEST_CASE("max pools of odd shapes on the device") {
  for (const MaxPool pool : {MaxPool{3, 2}, MaxPool{2, 2}, MaxPool{3, 1}, MaxPool{5, 3},
                             MaxPool{1, 1}, MaxPool{4, 1}, MaxPool{2, 3}, MaxPool{15, 7}})
    for (const Extent in : {Extent{1, 1, 3}, Extent{2, 3, 1}, Extent{7, 5, 4}, Extent{12, 13, 17},
                            Extent{5, 24, 64}}) {
      std::vector<float> x = values_of(3 * in.size(), 1);
      check(pool, in, 3, x);
      for (float& value : x) value = std::trunc(3 * value);  // full of ties
      check(pool, in, 3, x);
    }
}

TEST_CASE("a max pool of unaligned values, of one image and of rows beyond a block") {
  for (const Extent in : {Extent{5, 7, 8}, Extent{3, 40, 32}, Extent{24, 24, 64}})
    for (const std::size_t shift : std::initializer_list<std::size_t>{0, 1, 2})
      check({3, 2}, in, 1, values_of(in.size(), 3), shift);
}

TEST_CASE("a window's first NaN wins, and -infinity wins where there is nothing else") {
  const Extent in{7, 6, 4};
  for (const MaxPool pool : {MaxPool{3, 2}, MaxPool{2, 1}, MaxPool{5, 2}}) {
    std::vector<float> x = values_of(2 * in.size(), 5);
    for (std::size_t i = 0; i < x.size(); i += 7) x[i] = kNaN;
    for (std::size_t i = 3; i < x.size(); i += 11) x[i] = kInfinity;
    const std::vector<float> dy = values_of(2 * output_extent(Layer{"", pool}, in).size(), 2);
    const Pooled want = pool_plainly(pool, in, 2, x, dy);
    const Pooled got = pool_on_device(pool, in, 2, x, dy);
    CHECK(same_bits(got.output, want.output));
    CHECK(same_bits(got.d_input, want.d_input));
    check(pool, in, 2, std::vector<float>(2 * in.size(), -kInfinity));
  }
}

TEST_CASE("a NaN that comes back through a pool reaches the value that won alone") {
  const Extent in{4, 4, 4};
  std::vector<float> dy(16, 1.0f);
  dy[5] = kNaN;  // output (0, 1), channel 1
  const std::vector<float> x = values_of(in.size(), 8);
  const Pooled got = pool_on_device({3, 2}, in, 1, x, dy);
  const Pooled want = pool_plainly({3, 2}, in, 1, x, dy);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(std::isnan(got.d_input[i]) == std::isnan(want.d_input[i]));
}

TEST_CASE("the relu before a max pool is undone by the winners") {
  for (const Extent in : {Extent{6, 7, 8}, Extent{5, 5, 3}})
    for (const MaxPool pool : {MaxPool{3, 2}, MaxPool{2, 1}}) {
      std::vector<float> x = values_of(2 * in.size(), 9);
      for (float& value : x) value = std::max(0.0f, value - 0.6f);  // whole windows of zeros
      x[1] = kNaN;
      const std::vector<float> dy = values_of(2 * output_extent(Layer{"", pool}, in).size(), 2);
      const Pooled got = pool_on_device(pool, in, 2, x, dy, true);
      Pooled want = pool_plainly(pool, in, 2, x, dy);
      CHECK(same_bits(got.output, want.output));
      bool stopped = false;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] <= 0) {
          stopped |= want.d_input[i] != 0;
          want.d_input[i] = 0;
        }
      CHECK(stopped);
      CHECK(same_bits(got.d_input, want.d_input));
    }
}

TEST_CASE("max pools on the device agree with TensorFlow's") {
  const reference::Safetensors file(reference::golden_dir() / "layers.safetensors");
  int cases = 0;
  for (const std::string& full : file.names()) {
    if (!full.starts_with("max_pool/") || !full.ends_with("/x")) continue;
    const std::string name = full.substr(0, full.size() - 2);
    INFO(name);
    ++cases;
    const std::vector<std::size_t>& extent = file.shape(full);
    const std::vector<std::int32_t> p = file.integers(name + "/parameters");
    const Pooled got = pool_on_device(
        {p[0], p[1]},
        {static_cast<int>(extent[1]), static_cast<int>(extent[2]), static_cast<int>(extent[3])},
        static_cast<int>(extent[0]), file.floats(full), file.floats(name + "/dy"));
    CHECK(got.output == file.floats(name + "/y"));
    CHECK(reference::relative_error(got.d_input, file.floats(name + "/dx")) < 1e-6);
  }
  CHECK(cases == 6);
}

TEST_CASE("a pool's window beyond what a winner can tell is refused") {
  const Extent in{20, 20, 1};
  TestDevice device;
  float* values = device.room<float>(in.size());
  CHECK_THROWS_AS(
      max_pool(device.stream(), shape_of({16, 16}, in, 1), values, values, nullptr, false),
      std::invalid_argument);
}

}  // namespace
}  // namespace towers::cuda::test
