// In the place of cuda/conv2d.cpp and cuDNN: plain loops. With --convolution=direct the module's
// own kernels run, as there.

#include "cuda/conv2d.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/cuda_host/vendor.h"

namespace towers::cuda {
namespace {

using cuda_host::enqueue_operation;
using cuda_host::floats;
using cuda_host::product;

// Most of the time of tests goes by in these loops.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TOWERS_FAST __attribute__((target_clones("avx2", "default")))
#else
#define TOWERS_FAST
#endif

// Calls f(output pixel, input pixel, position in the window) for all that meet within one image.
template <class F>
void for_each_tap(const WindowShape& s, const F& f) {
  for (int oy = 0; oy < s.output.height; ++oy)
    for (int ox = 0; ox < s.output.width; ++ox)
      for (int ky = 0; ky < s.size; ++ky)
        for (int kx = 0; kx < s.size; ++kx) {
          const int iy = oy * s.stride + ky - s.pad_top, ix = ox * s.stride + kx - s.pad_left;
          if (iy < 0 || iy >= s.input.height || ix < 0 || ix >= s.input.width) continue;
          f(product(oy * s.output.width + ox), product(iy * s.input.width + ix),
            product(ky * s.size + kx));
        }
}

struct Sizes {
  explicit Sizes(const WindowShape& s)
      : inputs(product(s.input.channels)),
        outputs(product(s.output.channels)),
        output_pixels(product(s.output.height, s.output.width)),
        input_image(s.input.size()),
        output_image(s.output.size()),
        filter(product(s.size, s.size, s.input.channels, s.output.channels)) {}
  std::size_t inputs, outputs, output_pixels, input_image, output_image, filter;
};

TOWERS_FAST void forward_image(const WindowShape& s, const Sizes& n, const float* x, const float* w,
                               const float* biases, bool relu, float* y) {
  for (std::size_t p = 0; p < n.output_pixels; ++p)
    std::copy_n(biases, n.outputs, y + p * n.outputs);
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    float* const sums = y + out * n.outputs;
    for (std::size_t i = 0; i < n.inputs; ++i) {
      const float value = x[in * n.inputs + i];
      const float* const row = w + (tap * n.inputs + i) * n.outputs;
      for (std::size_t o = 0; o < n.outputs; ++o) sums[o] += value * row[o];
    }
  });
  if (!relu) return;
  for (std::size_t i = 0; i < n.output_image; ++i)
    if (y[i] <= 0) y[i] = 0;  // NaN stays
}

TOWERS_FAST void input_gradient_image(const WindowShape& s, const Sizes& n, const float* dy,
                                      const float* transposed, float* dx) {
  std::fill_n(dx, n.input_image, 0.0f);
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    float* const sums = dx + in * n.inputs;
    for (std::size_t o = 0; o < n.outputs; ++o) {
      const float value = dy[out * n.outputs + o];
      const float* const row = transposed + (tap * n.outputs + o) * n.inputs;
      for (std::size_t i = 0; i < n.inputs; ++i) sums[i] += value * row[i];
    }
  });
}

TOWERS_FAST void weight_gradient_image(const WindowShape& s, const Sizes& n, const float* x,
                                       const float* dy, float* dw) {
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    const float* const d = dy + out * n.outputs;
    for (std::size_t i = 0; i < n.inputs; ++i) {
      const float value = x[in * n.inputs + i];
      float* const sums = dw + (tap * n.inputs + i) * n.outputs;
      for (std::size_t o = 0; o < n.outputs; ++o) sums[o] += value * d[o];
    }
  });
}

class StandInConvolution final : public Conv2d {
 public:
  StandInConvolution(const Conv2dSetting& setting, DeviceMemory& memory)
      : s_(setting), n_(setting.shape) {
    const WindowShape& w = s_.shape;
    if (w.batch < 1 || w.size < 1 || w.stride < 1 || w.pad_top < 0 || w.pad_left < 0 ||
        w.output.height != (w.input.height + w.stride - 1) / w.stride ||
        w.output.width != (w.input.width + w.stride - 1) / w.stride)
      throw std::logic_error("convolution (stand-in): shapes do not fit together");
    if (!s_.direct) filter_ = memory.allocate<float>(n_.filter);
  }

  std::string engine() const override { return s_.direct ? "direct" : "cuDNN"; }
  std::size_t workspace() const override { return s_.direct ? 0 : 4 * n_.filter; }

  void forward(Stream& stream, const float* x, const float* weights, const float* biases, float* y,
               void* workspace) override {
    if (s_.direct) return direct_convolution(stream, s_.shape, x, weights, biases, s_.relu, y);
    // Keeps the weights in a layout of its own, as cuDNN's wrapper does.
    enqueue_operation(
        stream, "filter", {floats(weights, n_.filter)}, {},
        [n = n_, to = filter_.data(), weights] { std::copy_n(weights, n.filter, to); });
    enqueue_operation(stream, "convolution", {input(x), output(y), floats(biases, n_.outputs)},
                      {workspace, this->workspace()},
                      [s = s_.shape, n = n_, relu = s_.relu, w = filter_.data(), x, biases, y] {
                        for (std::size_t b = 0; b < product(s.batch); ++b)
                          forward_image(s, n, x + b * n.input_image, w, biases, relu,
                                        y + b * n.output_image);
                      });
  }

  void input_gradient(Stream& stream, const float* dy, const float* weights, float* dx,
                      void* workspace) override {
    if (!s_.wants_input_gradient)
      throw std::logic_error("convolution (stand-in): made without an input gradient");
    if (s_.direct) return direct_convolution_input_gradient(stream, s_.shape, dy, weights, dx);
    enqueue_operation(
        stream, "convolution's input gradient", {input(dx), output(dy)},
        {workspace, this->workspace()}, [s = s_.shape, n = n_, w = filter_.data(), dy, dx] {
          std::vector<float> transposed(n.filter);
          for (std::size_t f = 0; f < n.filter; ++f) {
            const std::size_t o = f % n.outputs, i = f / n.outputs % n.inputs;
            transposed[(f / n.outputs / n.inputs * n.outputs + o) * n.inputs + i] = w[f];
          }
          for (std::size_t b = 0; b < product(s.batch); ++b)
            input_gradient_image(s, n, dy + b * n.output_image, transposed.data(),
                                 dx + b * n.input_image);
        });
  }

  void weight_gradient(Stream& stream, const float* x, const float* dy, float* d_weights,
                       void* workspace) override {
    if (!s_.training) throw std::logic_error("convolution (stand-in): made without training");
    if (s_.direct) return direct_convolution_weight_gradient(stream, s_.shape, x, dy, d_weights);
    enqueue_operation(stream, "convolution's weight gradient",
                      {input(x), output(dy), floats(d_weights, n_.filter)},
                      {workspace, this->workspace()}, [s = s_.shape, n = n_, x, dy, d_weights] {
                        std::vector<double> total(n.filter);
                        std::vector<float> of_image(n.filter);
                        for (std::size_t b = 0; b < product(s.batch); ++b) {
                          std::fill(of_image.begin(), of_image.end(), 0.0f);
                          weight_gradient_image(s, n, x + b * n.input_image,
                                                dy + b * n.output_image, of_image.data());
                          for (std::size_t f = 0; f < n.filter; ++f)
                            total[f] += double{of_image[f]};
                        }
                        for (std::size_t f = 0; f < n.filter; ++f)
                          d_weights[f] = static_cast<float>(total[f]);
                      });
  }

 private:
  cuda_host::Tensor input(const float* x) const {
    return floats(x, product(s_.shape.batch) * n_.input_image);
  }
  cuda_host::Tensor output(const float* y) const {
    return floats(y, product(s_.shape.batch) * n_.output_image);
  }

  Conv2dSetting s_;
  Sizes n_;
  std::span<float> filter_;
};

}  // namespace

std::unique_ptr<Conv2d> make_conv2d(const Conv2dSetting& setting, DeviceMemory& memory, Stream&) {
  return std::make_unique<StandInConvolution>(setting, memory);
}

}  // namespace towers::cuda
