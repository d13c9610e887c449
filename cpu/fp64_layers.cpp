#include "cpu/fp64_layers.h"

#include <algorithm>
#include <cmath>

namespace towers::cpu::fp64 {
namespace {

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

// y += factor * x.
void add_scaled(std::size_t n, double factor, const double* __restrict x, double* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// In eight sums, which a processor can add at once, then those in order.
double dot(std::size_t n, const double* x, const double* y) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  double sum = 0;
  for (const double s : sums) sum += s;
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// Calls f(output, tap, input) for each output position and each tap of its window that lies within
// the image: the outputs' first channel, the tap's number, the inputs' first channel.
template <class F>
void for_each_tap(const Extent& in, const Extent& out, int kernel, int stride, const F& f) {
  const int top = same_padding_before(in.height, kernel, stride);
  const int left = same_padding_before(in.width, kernel, stride);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x)
      for (int ky = 0; ky < kernel; ++ky)
        for (int kx = 0; kx < kernel; ++kx) {
          const int row = y * stride + ky - top, column = x * stride + kx - left;
          if (row < 0 || row >= in.height || column < 0 || column >= in.width) continue;
          f((size(y) * size(out.width) + size(x)) * size(out.channels), size(ky * kernel + kx),
            (size(row) * size(in.width) + size(column)) * size(in.channels));
        }
}

double norm_divisor(const LocalResponseNorm& layer, int channels, const double* x, int channel) {
  const int last = std::min(channels - 1, channel + layer.depth_radius);
  double squares = 0;
  for (int c = std::max(0, channel - layer.depth_radius); c <= last; ++c) squares += x[c] * x[c];
  return layer.bias + layer.alpha * squares;
}

}  // namespace

void relu(std::size_t size, double* y) {
  for (std::size_t i = 0; i < size; ++i)
    if (y[i] < 0) y[i] = 0;
}

void relu_backward(std::size_t size, const double* y, double* d_y) {
  for (std::size_t i = 0; i < size; ++i)
    if (y[i] <= 0) d_y[i] = 0;
}

void dense(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
           const double* b, double* y) {
  std::copy_n(b, outputs, y);
  for (std::size_t i = 0; i < inputs; ++i) add_scaled(outputs, x[i], w + i * outputs, y);
}

void dense_backward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                    const double* d_y, double* d_x, double* d_w, double* d_b) {
  add_scaled(outputs, 1, d_y, d_b);
  for (std::size_t i = 0; i < inputs; ++i) {
    add_scaled(outputs, x[i], d_y, d_w + i * outputs);
    if (d_x != nullptr) d_x[i] = dot(outputs, w + i * outputs, d_y);
  }
}

void convolution(const Convolution& layer, const Extent& in, const Extent& out, const double* x,
                 const double* w, const double* b, double* y) {
  const std::size_t inputs = size(in.channels), outputs = size(out.channels);
  for (std::size_t o = 0; o < out.size(); o += outputs) std::copy_n(b, outputs, y + o);
  for_each_tap(in, out, layer.kernel, layer.stride,
               [&](std::size_t o, std::size_t tap, std::size_t i) {
                 const double* matrix = w + tap * inputs * outputs;
                 for (std::size_t c = 0; c < inputs; ++c)
                   add_scaled(outputs, x[i + c], matrix + c * outputs, y + o);
               });
}

void convolution_backward(const Convolution& layer, const Extent& in, const Extent& out,
                          const double* x, const double* w, const double* d_y, double* d_x,
                          double* d_w, double* d_b) {
  const std::size_t inputs = size(in.channels), outputs = size(out.channels);
  if (d_x != nullptr) std::fill_n(d_x, in.size(), 0.0);
  for (std::size_t o = 0; o < out.size(); o += outputs) add_scaled(outputs, 1, d_y + o, d_b);
  for_each_tap(in, out, layer.kernel, layer.stride,
               [&](std::size_t o, std::size_t tap, std::size_t i) {
                 const std::size_t matrix = tap * inputs * outputs;
                 for (std::size_t c = 0; c < inputs; ++c) {
                   const std::size_t row = matrix + c * outputs;
                   add_scaled(outputs, x[i + c], d_y + o, d_w + row);
                   if (d_x != nullptr) d_x[i + c] += dot(outputs, w + row, d_y + o);
                 }
               });
}

void max_pool(const MaxPool& layer, const Extent& in, const Extent& out, const double* x, double* y,
              std::int32_t* winner) {
  std::fill_n(winner, out.size(), -1);
  for_each_tap(in, out, layer.size, layer.stride, [&](std::size_t o, std::size_t, std::size_t i) {
    for (std::size_t c = 0; c < size(in.channels); ++c) {
      const double value = x[i + c];
      if (winner[o + c] >= 0 && !(value > y[o + c]) && !(std::isnan(value) && y[o + c] == y[o + c]))
        continue;
      y[o + c] = value;
      winner[o + c] = static_cast<std::int32_t>(i + c);
    }
  });
}

void max_pool_backward(const Extent& in, const Extent& out, const double* d_y,
                       const std::int32_t* winner, double* d_x) {
  std::fill_n(d_x, in.size(), 0.0);
  for (std::size_t o = 0; o < out.size(); ++o) d_x[winner[o]] += d_y[o];
}

void local_response_norm(const LocalResponseNorm& layer, const Extent& extent, const double* x,
                         double* y) {
  for (std::size_t pixel = 0; pixel < extent.size(); pixel += size(extent.channels))
    for (int c = 0; c < extent.channels; ++c)
      y[pixel + size(c)] =
          x[pixel + size(c)] *
          std::pow(norm_divisor(layer, extent.channels, x + pixel, c), -layer.beta);
}

// With s the divisor of channel c, y[c] = x[c] * s^-beta, so each x[j] around c has
// -2 * alpha * beta * x[c] * x[j] * s^-(beta + 1) of it, and x[c] itself s^-beta more.
void local_response_norm_backward(const LocalResponseNorm& layer, const Extent& extent,
                                  const double* x, const double* d_y, double* d_x) {
  std::fill_n(d_x, extent.size(), 0.0);
  for (std::size_t pixel = 0; pixel < extent.size(); pixel += size(extent.channels))
    for (int c = 0; c < extent.channels; ++c) {
      const double gradient = d_y[pixel + size(c)];
      const double s = norm_divisor(layer, extent.channels, x + pixel, c);
      const double scale = std::pow(s, -layer.beta);
      d_x[pixel + size(c)] += gradient * scale;
      const double shared =
          -2 * layer.alpha * layer.beta * gradient * x[pixel + size(c)] * scale / s;
      const int last = std::min(extent.channels - 1, c + layer.depth_radius);
      for (int j = std::max(0, c - layer.depth_radius); j <= last; ++j)
        d_x[pixel + size(j)] += shared * x[pixel + size(j)];
    }
}

double softmax_loss(std::size_t classes, const double* logits, std::int32_t label, double scale,
                    double* d_logits) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  for (std::size_t c = 0; c < classes; ++c)
    d_logits[c] = scale * (std::exp(logits[c] - largest) / sum - (c == size(label) ? 1.0 : 0.0));
  return std::log(sum) - (logits[label] - largest);
}

}  // namespace towers::cpu::fp64
