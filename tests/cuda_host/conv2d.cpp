// In the place of cuda/conv2d.cpp and cuDNN: plain loops. With --convolution=direct the module's
// own kernels run, as there.

#include "cuda/conv2d.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/cuda_host/vendor.h"
#include "tests/cuda_host/world.h"

namespace towers::cuda {
namespace {

using cuda_host::enqueue_operation;
using cuda_host::product;
using cuda_host::Rounded;
using cuda_host::values;
using cuda_host::Widened;

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

template <class W>
[[gnu::always_inline]] inline void forward_image_in(const WindowShape& s, const Sizes& n,
                                                    const W* x, const W* w, const W* biases,
                                                    bool relu, W* y) {
  for (std::size_t p = 0; p < n.output_pixels; ++p)
    std::copy_n(biases, n.outputs, y + p * n.outputs);
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    W* const sums = y + out * n.outputs;
    for (std::size_t i = 0; i < n.inputs; ++i) {
      const W value = x[in * n.inputs + i];
      const W* const row = w + (tap * n.inputs + i) * n.outputs;
      for (std::size_t o = 0; o < n.outputs; ++o) sums[o] += value * row[o];
    }
  });
  if (!relu) return;
  for (std::size_t i = 0; i < n.output_image; ++i)
    if (y[i] <= 0) y[i] = 0;  // NaN stays
}

template <class W>
[[gnu::always_inline]] inline void input_gradient_image_in(const WindowShape& s, const Sizes& n,
                                                           const W* dy, const W* transposed,
                                                           W* dx) {
  std::fill_n(dx, n.input_image, W{0});
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    W* const sums = dx + in * n.inputs;
    for (std::size_t o = 0; o < n.outputs; ++o) {
      const W value = dy[out * n.outputs + o];
      const W* const row = transposed + (tap * n.outputs + o) * n.inputs;
      for (std::size_t i = 0; i < n.inputs; ++i) sums[i] += value * row[i];
    }
  });
}

template <class W>
[[gnu::always_inline]] inline void weight_gradient_image_in(const WindowShape& s, const Sizes& n,
                                                            const W* x, const W* dy, W* dw) {
  for_each_tap(s, [&](std::size_t out, std::size_t in, std::size_t tap) {
    const W* const d = dy + out * n.outputs;
    for (std::size_t i = 0; i < n.inputs; ++i) {
      const W value = x[in * n.inputs + i];
      W* const sums = dw + (tap * n.inputs + i) * n.outputs;
      for (std::size_t o = 0; o < n.outputs; ++o) sums[o] += value * d[o];
    }
  });
}

// Once for each type: target_clones is not for templates.
#define TOWERS_IMAGE_LOOPS(W)                                                                  \
  TOWERS_FAST void forward_image(const WindowShape& s, const Sizes& n, const W* x, const W* w, \
                                 const W* biases, bool relu, W* y) {                           \
    forward_image_in(s, n, x, w, biases, relu, y);                                             \
  }                                                                                            \
  TOWERS_FAST void input_gradient_image(const WindowShape& s, const Sizes& n, const W* dy,     \
                                        const W* transposed, W* dx) {                          \
    input_gradient_image_in(s, n, dy, transposed, dx);                                         \
  }                                                                                            \
  TOWERS_FAST void weight_gradient_image(const WindowShape& s, const Sizes& n, const W* x,     \
                                         const W* dy, W* dw) {                                 \
    weight_gradient_image_in(s, n, x, dy, dw);                                                 \
  }
TOWERS_IMAGE_LOOPS(float)
TOWERS_IMAGE_LOOPS(double)

template <class T>
class StandInConvolution final : public Conv2d<T> {
  using W = Wide<T>;

 public:
  StandInConvolution(const Conv2dSetting& setting, DeviceMemory& memory)
      : s_(setting), n_(setting.shape) {
    const WindowShape& w = s_.shape;
    if (w.batch < 1 || w.size < 1 || w.stride < 1 || w.pad_top < 0 || w.pad_left < 0 ||
        w.output.height != (w.input.height + w.stride - 1) / w.stride ||
        w.output.width != (w.input.width + w.stride - 1) / w.stride)
      throw std::logic_error("convolution (stand-in): shapes do not fit together");
    if (!s_.direct) filter_ = memory.allocate<T>(n_.filter);
    const cuda_host::Locked world;
    lacking_ = !s_.direct && s_.training && !world->settings.has_engines;
  }

  std::string engine() const override { return s_.direct ? "direct" : "cuDNN"; }
  std::string without_engine() const override { return lacking_ ? "weight gradient" : ""; }
  std::string refusals() const override {
    return lacking_ ? "weight gradient: no engine of the stand-in" : "";
  }
  std::size_t workspace() const override { return s_.direct ? 0 : 4 * n_.filter; }

  void forward(Stream& stream, const T* x, const T* weights, const T* biases, T* y,
               void* workspace) override {
    if (s_.direct) return direct_convolution(stream, s_.shape, x, weights, biases, s_.relu, y);
    // Keeps the weights in a layout of its own, as cuDNN's wrapper does.
    enqueue_operation(
        stream, "filter", {values(weights, n_.filter)}, {},
        [n = n_, to = filter_.data(), weights] { std::copy_n(weights, n.filter, to); });
    enqueue_operation(stream, "convolution", {input(x), output(y), values(biases, n_.outputs)},
                      {workspace, this->workspace()},
                      [s = s_.shape, n = n_, relu = s_.relu, f = filter_.data(), x, biases, y] {
                        const Widened<T> w(f, n.filter), b0(biases, n.outputs);
                        for (std::size_t b = 0; b < product(s.batch); ++b) {
                          const Widened<T> image(x + b * n.input_image, n.input_image);
                          Rounded<T> out(y + b * n.output_image, n.output_image);
                          forward_image(s, n, image.data(), w.data(), b0.data(), relu, out.data());
                        }
                      });
  }

  void input_gradient(Stream& stream, const T* dy, const T* weights, T* dx,
                      void* workspace) override {
    if (!s_.wants_input_gradient)
      throw std::logic_error("convolution (stand-in): made without an input gradient");
    if (s_.direct) return direct_convolution_input_gradient(stream, s_.shape, dy, weights, dx);
    enqueue_operation(
        stream, "convolution's input gradient", {input(dx), output(dy)},
        {workspace, this->workspace()}, [s = s_.shape, n = n_, w = filter_.data(), dy, dx] {
          std::vector<W> transposed(n.filter);
          for (std::size_t f = 0; f < n.filter; ++f) {
            const std::size_t o = f % n.outputs, i = f / n.outputs % n.inputs;
            transposed[(f / n.outputs / n.inputs * n.outputs + o) * n.inputs + i] = widen(w[f]);
          }
          for (std::size_t b = 0; b < product(s.batch); ++b) {
            const Widened<T> image(dy + b * n.output_image, n.output_image);
            Rounded<T> out(dx + b * n.input_image, n.input_image);
            input_gradient_image(s, n, image.data(), transposed.data(), out.data());
          }
        });
  }

  void weight_gradient(Stream& stream, const T* x, const T* dy, W* d_weights,
                       void* workspace) override {
    if (!s_.training) throw std::logic_error("convolution (stand-in): made without training");
    if (s_.direct) return direct_convolution_weight_gradient(stream, s_.shape, x, dy, d_weights);
    enqueue_operation(stream, "convolution's weight gradient",
                      {input(x), output(dy), values(d_weights, n_.filter)},
                      {workspace, this->workspace()}, [s = s_.shape, n = n_, x, dy, d_weights] {
                        std::vector<double> total(n.filter);
                        std::vector<W> of_image(n.filter);
                        for (std::size_t b = 0; b < product(s.batch); ++b) {
                          std::fill(of_image.begin(), of_image.end(), W{0});
                          const Widened<T> in(x + b * n.input_image, n.input_image);
                          const Widened<T> out(dy + b * n.output_image, n.output_image);
                          weight_gradient_image(s, n, in.data(), out.data(), of_image.data());
                          for (std::size_t f = 0; f < n.filter; ++f)
                            total[f] += double{of_image[f]};
                        }
                        // As cuDNN, which stores no gradient wider than the weights.
                        for (std::size_t f = 0; f < n.filter; ++f)
                          d_weights[f] = widen(narrow<T>(static_cast<W>(total[f])));
                      });
  }

 private:
  cuda_host::Tensor input(const T* x) const {
    return values(x, product(s_.shape.batch) * n_.input_image);
  }
  cuda_host::Tensor output(const T* y) const {
    return values(y, product(s_.shape.batch) * n_.output_image);
  }

  Conv2dSetting s_;
  Sizes n_;
  std::span<T> filter_;
  bool lacking_ = false;
};

}  // namespace

template <class T>
std::unique_ptr<Conv2d<T>> make_conv2d(const Conv2dSetting& setting, DeviceMemory& memory,
                                       Stream&) {
  return std::make_unique<StandInConvolution<T>>(setting, memory);
}
#define TOWERS_INSTANTIATE(T) \
  template std::unique_ptr<Conv2d<T>> make_conv2d(const Conv2dSetting&, DeviceMemory&, Stream&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
