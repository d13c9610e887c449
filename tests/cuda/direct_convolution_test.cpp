// The direct convolution on the device against the reference and TensorFlow's values.

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

struct Pass {
  std::vector<float> y, dx, dw;
};

struct Problem {
  Convolution op;
  Extent in;
  int batch;
  std::vector<float> x, w, b, dy;

  Extent out() const { return output_extent(Layer{"", op}, in); }
};

Problem draw(const Convolution& op, Extent in, int batch) {
  Problem p{op, in, batch, {}, {}, {}, {}};
  const std::size_t size = static_cast<std::size_t>(batch);
  p.x = values_of(size * in.size(), 1);
  p.w = values_of(static_cast<std::size_t>(op.kernel * op.kernel * in.channels * op.outputs), 2);
  p.b = values_of(static_cast<std::size_t>(op.outputs), 3);
  p.dy = values_of(size * p.out().size(), 4);
  return p;
}

Pass on_device(const Problem& p, std::size_t shift = 0) {
  TestDevice device;
  const WindowShape shape{p.batch,
                          p.in,
                          p.out(),
                          p.op.kernel,
                          p.op.stride,
                          same_padding_before(p.in.height, p.op.kernel, p.op.stride),
                          same_padding_before(p.in.width, p.op.kernel, p.op.stride)};
  const float* x = device.put(p.x, shift);
  const float* w = device.put(p.w, shift);
  const float* dy = device.put(p.dy, shift);
  float* y = device.room<float>(p.dy.size(), shift);
  float* dx = device.room<float>(p.x.size(), shift);
  float* dw = device.room<float>(p.w.size(), shift);
  direct_convolution(device.stream(), shape, x, w, device.put(p.b, shift), p.op.relu, y);
  direct_convolution_input_gradient(device.stream(), shape, dy, w, dx);
  direct_convolution_weight_gradient(device.stream(), shape, x, dy, dw);
  return {device.get(y, p.dy.size()), device.get(dx, p.x.size()), device.get(dw, p.w.size())};
}

void check(const Problem& p, std::size_t shift = 0) {
  CAPTURE(p.op.kernel, p.op.stride, p.op.outputs, p.op.relu, p.in.height, p.in.width, p.in.channels,
          p.batch, shift);
  const std::vector<double> x = reference::doubles(p.x), w = reference::doubles(p.w),
                            b = reference::doubles(p.b), dy = reference::doubles(p.dy);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
  for (std::size_t image = 0; image < static_cast<std::size_t>(p.batch); ++image) {
    const std::size_t in = image * p.in.size(), out = image * p.out().size();
    reference::convolution_forward(p.op, p.in, x.data() + in, w.data(), b.data(), y.data() + out);
    reference::convolution_backward(p.op, p.in, x.data() + in, w.data(), dy.data() + out,
                                    dx.data() + in, dw.data(), db.data());
  }
  if (p.op.relu)
    for (double& value : y) value = std::max(value, 0.0);
  const Pass got = on_device(p, shift);
  constexpr double kTolerance = 5e-6;  // a single sum, all there is of some shapes, may cancel
  CHECK(reference::relative_error(got.y, y) < kTolerance);
  CHECK(reference::relative_error(got.dx, dx) < kTolerance);
  CHECK(reference::relative_error(got.dw, dw) < kTolerance);
}

TEST_CASE("direct convolutions of odd shapes on the device") {
  for (const int kernel : {1, 3, 4})
    for (const int stride : {1, 2, 3})
      for (const Extent in : {Extent{1, 1, 1}, Extent{2, 3, 17}, Extent{7, 5, 3}, Extent{6, 13, 4}})
        for (const int outputs : {1, 5, 8, 36})
          check(draw({kernel, stride, outputs, outputs % 2 == 0}, in, 1 + outputs % 3));
}

TEST_CASE("a direct convolution like the trainer's, and of unaligned values") {
  check(draw({5, 1, 64, true}, {8, 8, 3}, 2));
  check(draw({5, 1, 64, true}, {6, 6, 64}, 2));
  check(draw({3, 1, 8, true}, {6, 9, 8}, 3), 1);
}

TEST_CASE("padding is no value that weights multiply") {
  Problem p = draw({3, 1, 4, false}, {3, 3, 4}, 1);
  p.w[0] = std::numeric_limits<float>::infinity();  // the tap at the top left, beyond the image
  const Pass got = on_device(p);
  CHECK(std::isfinite(got.y[0]));            // output (0, 0) reads padding there
  CHECK_FALSE(std::isfinite(got.y[4 * 4]));  // output (1, 1) reads an input
}

TEST_CASE("direct convolutions on the device agree with TensorFlow's") {
  const reference::Safetensors file(reference::golden_dir() / "layers.safetensors");
  int cases = 0;
  for (const std::string& full : file.names()) {
    if (!full.starts_with("convolution/") || !full.ends_with("/x")) continue;
    const std::string name = full.substr(0, full.size() - 2);
    INFO(name);
    ++cases;
    const std::vector<std::size_t>& extent = file.shape(full);
    const std::vector<std::int32_t> parameters = file.integers(name + "/parameters");
    Problem p;
    p.b = file.floats(name + "/b");
    p.op = {parameters[0], parameters[1], static_cast<int>(p.b.size()), false};
    p.batch = static_cast<int>(extent[0]);
    p.in = {static_cast<int>(extent[1]), static_cast<int>(extent[2]), static_cast<int>(extent[3])};
    p.x = file.floats(full);
    p.w = file.floats(name + "/w");
    p.dy = file.floats(name + "/dy");
    const Pass got = on_device(p);
    CHECK(reference::relative_error(got.y, file.floats(name + "/y")) < 2e-6);
    CHECK(reference::relative_error(got.dx, file.floats(name + "/dx")) < 2e-6);
    CHECK(reference::relative_error(got.dw, file.floats(name + "/dw")) < 2e-6);
  }
  CHECK(cases == 6);
}

}  // namespace
}  // namespace towers::cuda::test
