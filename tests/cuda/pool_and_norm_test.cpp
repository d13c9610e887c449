// A pool and a norm in one pass give the bits of the two one by one, which other tests compare with
// the reference.

#include <catch2/catch.hpp>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"

namespace towers::cuda::test {
namespace {

constexpr LocalResponseNorm kNorm{4, 1, 0.3, 0.75};

WindowShape shape_of(Extent in, int batch, MaxPool pool = {3, 2}) {
  return {batch,
          in,
          output_extent(Layer{"", pool}, in),
          pool.size,
          pool.stride,
          same_padding_before(in.height, pool.size, pool.stride),
          same_padding_before(in.width, pool.size, pool.stride)};
}

const std::vector<Extent>& extents() {
  static const std::vector<Extent> all{{1, 1, 4},  {2, 3, 4},   {5, 7, 8},    {6, 4, 36},
                                       {9, 2, 64}, {3, 29, 64}, {12, 12, 64}, {24, 24, 64}};
  return all;
}

// After a relu, with ties at zero, a NaN and an infinity.
std::vector<float> input_of(std::size_t count) {
  std::vector<float> x = values_of(count, 1, 2);
  for (float& value : x) value = std::max(value, 0.0f);
  if (count > 100) {
    x[count / 2] = std::numeric_limits<float>::quiet_NaN();
    x[count / 3] = std::numeric_limits<float>::infinity();
  }
  return x;
}

struct Result {
  std::vector<float> between, output, d_input;
  std::vector<std::uint8_t> winners;

  bool operator==(const Result& other) const {
    return same_bits(between, other.between) && same_bits(output, other.output) &&
           same_bits(d_input, other.d_input) && winners == other.winners;
  }
};

// Buffers of a pass with `inputs` values at its beginning and `outputs` at its end.
struct Pass {
  Pass(std::size_t inputs, std::size_t outputs, std::size_t between)
      : input(device.put(input_of(inputs))),
        d_output(device.put(values_of(outputs, 2))),
        middle(device.room<float>(between)),
        d_middle(device.room<float>(between)),
        output(device.room<float>(outputs)),
        d_input(device.put(std::vector<float>(inputs, -7))) {}

  TestDevice device;
  const float *input, *d_output;
  float *middle, *d_middle, *output, *d_input;
};

Result pool_then_norm_on_device(Extent in, int batch, bool relu, bool fused) {
  const WindowShape shape = shape_of(in, batch);
  REQUIRE(pool_and_norm_fit(shape, kNorm));
  const std::size_t size = static_cast<std::size_t>(batch);
  const std::size_t inputs = size * in.size(), outputs = size * shape.output.size();
  const std::size_t pixels = outputs / static_cast<std::size_t>(in.channels);
  Pass p(inputs, outputs, outputs);
  Stream& stream = p.device.stream();
  std::uint8_t* winners = p.device.room<std::uint8_t>(outputs);
  if (fused) {
    pool_then_norm(stream, shape, kNorm, p.input, relu, p.middle, winners, p.output);
    pool_then_norm_backward(stream, shape, kNorm, p.middle, p.d_output, winners, p.d_input);
  } else {
    max_pool(stream, shape, p.input, p.middle, winners, relu);
    local_response_norm(stream, kNorm, pixels, in.channels, p.middle, p.output);
    local_response_norm_backward(stream, kNorm, pixels, in.channels, p.middle, p.d_output, false,
                                 p.d_middle);
    max_pool_backward(stream, shape, p.d_middle, winners, p.d_input);
  }
  return {p.device.get(p.middle, outputs), p.device.get(p.output, outputs),
          p.device.get(p.d_input, inputs), p.device.get(winners, outputs)};
}

Result norm_then_pool_on_device(Extent in, int batch, bool relu, bool fused) {
  const WindowShape shape = shape_of(in, batch);
  REQUIRE(pool_and_norm_fit(shape, kNorm));
  const std::size_t size = static_cast<std::size_t>(batch);
  const std::size_t inputs = size * in.size(), outputs = size * shape.output.size();
  const std::size_t pixels = inputs / static_cast<std::size_t>(in.channels);
  Pass p(inputs, outputs, inputs);
  Stream& stream = p.device.stream();
  std::uint8_t* winners = p.device.room<std::uint8_t>(outputs);
  if (fused) {
    norm_then_pool(stream, kNorm, shape, p.input, p.output, winners);
    norm_then_pool_backward(stream, kNorm, shape, p.input, p.d_output, winners, relu, p.d_input);
  } else {
    local_response_norm(stream, kNorm, pixels, in.channels, p.input, p.middle);
    max_pool(stream, shape, p.middle, p.output, winners, false);
    max_pool_backward(stream, shape, p.d_output, winners, p.d_middle);
    local_response_norm_backward(stream, kNorm, pixels, in.channels, p.input, p.d_middle, relu,
                                 p.d_input);
  }
  return {{},
          p.device.get(p.output, outputs),
          p.device.get(p.d_input, inputs),
          p.device.get(winners, outputs)};
}

TEST_CASE("a pool and a norm in one pass") {
  for (const Extent in : extents())
    for (const int batch : {1, 3})
      for (const bool relu : {false, true}) {
        CAPTURE(in.height, in.width, in.channels, batch, relu);
        CHECK(pool_then_norm_on_device(in, batch, relu, true) ==
              pool_then_norm_on_device(in, batch, relu, false));
      }
}

TEST_CASE("a norm and a pool in one pass") {
  for (const Extent in : extents())
    for (const int batch : {1, 3})
      for (const bool relu : {false, true}) {
        CAPTURE(in.height, in.width, in.channels, batch, relu);
        CHECK(norm_then_pool_on_device(in, batch, relu, true) ==
              norm_then_pool_on_device(in, batch, relu, false));
      }
}

TEST_CASE("where no backward pass follows only the output is written, and is the same") {
  const Extent in{7, 6, 64};
  const WindowShape shape = shape_of(in, 2);
  const std::size_t inputs = 2 * in.size(), outputs = 2 * shape.output.size();
  // launch(stream, input, winners or null, output)
  const auto output_of = [&](bool winners, const auto& launch) {
    Pass p(inputs, outputs, outputs);
    launch(p.device.stream(), p.input, winners ? p.device.room<std::uint8_t>(outputs) : nullptr,
           p.output);
    return p.device.get(p.output, outputs);
  };
  const auto pool_first = [&](Stream& stream, const float* x, std::uint8_t* winners, float* y) {
    pool_then_norm(stream, shape, kNorm, x, true, static_cast<float*>(nullptr), winners, y);
  };
  const auto norm_first = [&](Stream& stream, const float* x, std::uint8_t* winners, float* y) {
    norm_then_pool(stream, kNorm, shape, x, y, winners);
  };
  const auto alone = [&](Stream& stream, const float* x, std::uint8_t* winners, float* y) {
    max_pool(stream, shape, x, y, winners, true);
  };
  CHECK(same_bits(output_of(false, pool_first), output_of(true, pool_first)));
  CHECK(
      same_bits(output_of(false, pool_first), pool_then_norm_on_device(in, 2, true, true).output));
  CHECK(same_bits(output_of(false, norm_first), output_of(true, norm_first)));
  CHECK(same_bits(output_of(false, alone), output_of(true, alone)));
}

TEST_CASE("what does not fit in one pass is known") {
  const Extent in{24, 24, 64};
  CHECK(pool_and_norm_fit(shape_of(in, 1), LocalResponseNorm{}));
  CHECK_FALSE(pool_and_norm_fit(shape_of(in, 1, {2, 2}), kNorm));
  CHECK_FALSE(pool_and_norm_fit(shape_of(in, 1, {3, 1}), kNorm));
  CHECK_FALSE(pool_and_norm_fit(shape_of(in, 1), {3, 1, 0.3, 0.75}));
  CHECK_FALSE(pool_and_norm_fit(shape_of(in, 1), {4, 1, 0.3, 0.5}));
  CHECK_FALSE(pool_and_norm_fit(shape_of({24, 24, 65}, 1), kNorm));
  CHECK_FALSE(pool_and_norm_fit(shape_of({24, 64, 64}, 1), kNorm));  // two rows of 32 x 64 values
  CHECK_FALSE(pool_and_norm_fit(shape_of({1, 1, 1028}, 1), kNorm));
}

}  // namespace
}  // namespace towers::cuda::test
