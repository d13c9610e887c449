#include "tests/reference/layers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace towers::reference {
namespace {

std::size_t index(Extent e, int row, int column, int channel = 0) {
  return (static_cast<std::size_t>(row) * static_cast<std::size_t>(e.width) +
          static_cast<std::size_t>(column)) *
             static_cast<std::size_t>(e.channels) +
         static_cast<std::size_t>(channel);
}

// Calls f(output position, kernel position, input position) for each kernel tap inside the image;
// positions are indices of the first channel, the kernel's counts taps (row * kernel + column).
template <class F>
void for_each_tap(Extent in, Extent out, int kernel, int stride, const F& f) {
  const int top = same_padding_before(in.height, kernel, stride);
  const int left = same_padding_before(in.width, kernel, stride);
  for (int oy = 0; oy < out.height; ++oy)
    for (int ox = 0; ox < out.width; ++ox)
      for (int ky = 0; ky < kernel; ++ky)
        for (int kx = 0; kx < kernel; ++kx) {
          const int iy = oy * stride + ky - top;
          const int ix = ox * stride + kx - left;
          if (iy < 0 || iy >= in.height || ix < 0 || ix >= in.width) continue;
          f(index(out, oy, ox), static_cast<std::size_t>(ky * kernel + kx), index(in, iy, ix));
        }
}

// y += x w, for w: [inputs, outputs].
void multiply_add(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                  double* y) {
  for (std::size_t i = 0; i < inputs; ++i)
    for (std::size_t o = 0; o < outputs; ++o) y[o] += x[i] * w[i * outputs + o];
}

// dx += w dy and dw += x dy.
void multiply_add_backward(std::size_t inputs, std::size_t outputs, const double* x,
                           const double* w, const double* dy, double* dx, double* dw) {
  for (std::size_t i = 0; i < inputs; ++i) {
    double sum = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
      sum += w[i * outputs + o] * dy[o];
      dw[i * outputs + o] += x[i] * dy[o];
    }
    dx[i] += sum;
  }
}

// bias + alpha * sum of squares over the window around `channel`; x: one position's channels.
double norm_scale(const LocalResponseNorm& n, int channels, const double* x, int channel) {
  double sum = 0;
  for (int c = std::max(0, channel - n.depth_radius);
       c <= std::min(channels - 1, channel + n.depth_radius); ++c)
    sum += x[c] * x[c];
  return n.bias + n.alpha * sum;
}

}  // namespace

void convolution_forward(const Convolution& c, Extent in, const double* x, const double* w,
                         const double* b, double* y) {
  const Extent out = output_extent(Layer{"", c}, in);
  const std::size_t inputs = static_cast<std::size_t>(in.channels);
  const std::size_t outputs = static_cast<std::size_t>(c.outputs);
  for (std::size_t i = 0; i < out.size(); ++i) y[i] = b[i % outputs];
  for_each_tap(in, out, c.kernel, c.stride, [&](std::size_t o, std::size_t tap, std::size_t i) {
    multiply_add(inputs, outputs, x + i, w + tap * inputs * outputs, y + o);
  });
}

void convolution_backward(const Convolution& c, Extent in, const double* x, const double* w,
                          const double* dy, double* dx, double* dw, double* db) {
  const Extent out = output_extent(Layer{"", c}, in);
  const std::size_t inputs = static_cast<std::size_t>(in.channels);
  const std::size_t outputs = static_cast<std::size_t>(c.outputs);
  std::fill(dx, dx + in.size(), 0.0);
  for (std::size_t i = 0; i < out.size(); ++i) db[i % outputs] += dy[i];
  for_each_tap(in, out, c.kernel, c.stride, [&](std::size_t o, std::size_t tap, std::size_t i) {
    const std::size_t at = tap * inputs * outputs;
    multiply_add_backward(inputs, outputs, x + i, w + at, dy + o, dx + i, dw + at);
  });
}

void max_pool_winners(const MaxPool& p, Extent in, const double* x, std::int32_t* winner) {
  const Extent out = output_extent(Layer{"", p}, in);
  std::fill(winner, winner + out.size(), -1);
  for_each_tap(in, out, p.size, p.stride, [&](std::size_t o, std::size_t, std::size_t i) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(in.channels); ++c) {
      std::int32_t& best = winner[o + c];
      if (best < 0 || x[i + c] > x[best] || (std::isnan(x[i + c]) && !std::isnan(x[best])))
        best = static_cast<std::int32_t>(i + c);
    }
  });
}

void gather(std::size_t outputs, const std::int32_t* winner, const double* x, double* y) {
  for (std::size_t o = 0; o < outputs; ++o) y[o] = x[winner[o]];
}

void scatter_add(std::size_t outputs, const std::int32_t* winner, const double* dy,
                 std::size_t inputs, double* dx) {
  std::fill(dx, dx + inputs, 0.0);
  for (std::size_t o = 0; o < outputs; ++o) dx[winner[o]] += dy[o];
}

void local_response_norm_forward(const LocalResponseNorm& n, Extent in, const double* x,
                                 double* y) {
  for (std::size_t at = 0; at < in.size(); at += static_cast<std::size_t>(in.channels))
    for (int c = 0; c < in.channels; ++c)
      y[at + static_cast<std::size_t>(c)] =
          x[at + static_cast<std::size_t>(c)] *
          std::pow(norm_scale(n, in.channels, x + at, c), -n.beta);
}

// y_c = x_c s_c^-beta with s_c as in norm_scale, so
// dy_c/dx_j = [c = j] s_c^-beta - 2 alpha beta x_c x_j s_c^(-beta - 1) for j in the window of c.
void local_response_norm_backward(const LocalResponseNorm& n, Extent in, const double* x,
                                  const double* dy, double* dx) {
  std::fill(dx, dx + in.size(), 0.0);
  for (std::size_t at = 0; at < in.size(); at += static_cast<std::size_t>(in.channels))
    for (int c = 0; c < in.channels; ++c) {
      const std::size_t center = at + static_cast<std::size_t>(c);
      const double scale = norm_scale(n, in.channels, x + at, c);
      dx[center] += dy[center] * std::pow(scale, -n.beta);
      const double shared =
          -2 * n.alpha * n.beta * dy[center] * x[center] * std::pow(scale, -n.beta - 1);
      for (int j = std::max(0, c - n.depth_radius);
           j <= std::min(in.channels - 1, c + n.depth_radius); ++j)
        dx[at + static_cast<std::size_t>(j)] += shared * x[at + static_cast<std::size_t>(j)];
    }
}

void dense_forward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                   const double* b, double* y) {
  std::copy(b, b + outputs, y);
  multiply_add(inputs, outputs, x, w, y);
}

void dense_backward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                    const double* dy, double* dx, double* dw, double* db) {
  std::fill(dx, dx + inputs, 0.0);
  for (std::size_t o = 0; o < outputs; ++o) db[o] += dy[o];
  multiply_add_backward(inputs, outputs, x, w, dy, dx, dw);
}

double softmax_cross_entropy(int classes, const double* logits, std::int32_t label,
                             double* dlogits) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
  for (int c = 0; c < classes; ++c)
    dlogits[c] = std::exp(logits[c] - largest) / sum - (c == label ? 1.0 : 0.0);
  return std::log(sum) - (logits[label] - largest);
}

}  // namespace towers::reference
