#pragma once
// Local response normalization: y = x * s^-beta with s = bias + alpha * (sum of x^2 over the
// channels around). Sums start at the lowest channel, in whatever form of the code.

#include <cmath>
#include <cstddef>

#include "core/host_device.h"
#include "core/net.h"
#include "cuda/lanes.h"

namespace towers::cuda {

// W: what it is computed in, float or double.
template <class W>
struct NormParameters {
  explicit NormParameters(const LocalResponseNorm& norm)
      : radius(norm.depth_radius),
        bias(static_cast<W>(norm.bias)),
        alpha(static_cast<W>(norm.alpha)),
        beta(static_cast<W>(norm.beta)) {}

  int radius;
  W bias, alpha, beta;
};

// What is compiled in for groups of four channels: with radius 4 they need their two neighbours and
// nothing else.
inline constexpr int kNormRadius = 4;
inline constexpr float kNormBeta = 0.75f;
inline bool norm_fits_groups(const LocalResponseNorm& norm, int channels) {
  return norm.depth_radius == kNormRadius && static_cast<float>(norm.beta) == kNormBeta &&
         channels % 4 == 0;
}

TOWERS_HD inline float reciprocal_square_root(float s) {
#ifdef __CUDA_ARCH__
  return rsqrtf(s);  // within 2 units in the last place
#else
  return 1.0f / std::sqrt(s);
#endif
}
TOWERS_HD inline double reciprocal_square_root(double s) {
  return 1.0 / std::sqrt(s);
}

// s^-beta and s^-(beta + 1).
template <class W>
struct NormPowers {
  W scale, scale_over_s;
};
template <class W>
TOWERS_HD inline NormPowers<W> norm_powers(W s) {  // for kNormBeta
  const W root = reciprocal_square_root(s), inverse = root * root;
  const W scale = inverse * reciprocal_square_root(root);  // s^-1 * s^0.25
  return {scale, scale * inverse};
}
template <class W>
TOWERS_HD inline NormPowers<W> norm_powers(W s, W beta) {
  if (beta == W{kNormBeta}) return norm_powers(s);
  const W scale = std::pow(s, -beta);
  return {scale, scale / s};
}

// ---- One channel of a pixel of any size. x and d_output: the pixel's channels.
TOWERS_HD inline int window_begin(int c, int radius) {
  return c > radius ? c - radius : 0;
}
TOWERS_HD inline int window_end(int c, int radius, int channels) {
  return radius < channels - c ? c + radius + 1 : channels;
}

template <class T>
TOWERS_HD inline NormPowers<Wide<T>> powers_at(const NormParameters<Wide<T>>& n, int channels,
                                               int c, const T* x) {
  const int end = window_end(c, n.radius, channels);
  Wide<T> sum = 0;
  for (int i = window_begin(c, n.radius); i < end; ++i) sum += widen(x[i]) * widen(x[i]);
  return norm_powers(n.bias + n.alpha * sum, n.beta);
}

template <class T>
TOWERS_HD inline Wide<T> normalized_at(const NormParameters<Wide<T>>& n, int channels, int c,
                                       const T* x) {
  return widen(x[c]) * powers_at(n, channels, c, x).scale;
}

template <class W>
TOWERS_HD inline W norm_gradient(const NormParameters<W>& n, W x, W through, W sum,
                                 bool relu_input) {
  if (relu_input && x <= 0) return 0;
  return through + -2 * n.alpha * n.beta * x * sum;
}

template <class T>
TOWERS_HD inline Wide<T> norm_gradient_at(const NormParameters<Wide<T>>& n, int channels, int c,
                                          const T* x, const T* d_output, bool relu_input) {
  const int end = window_end(c, n.radius, channels);
  Wide<T> sum = 0, through = 0;
  for (int i = window_begin(c, n.radius); i < end; ++i) {
    const NormPowers<Wide<T>> powers = powers_at(n, channels, i, x);
    sum += widen(d_output[i]) * widen(x[i]) * powers.scale_over_s;
    if (i == c) through = widen(d_output[i]) * powers.scale;
  }
  return norm_gradient(n, widen(x[c]), through, sum, relu_input);
}

// ---- Four channels at a time, with the groups before and after them (zeros at the ends).
template <class W>
struct NormNeighbours {
  Lanes<W, 4> before, own, after;

  // The window's sum around channel i of the own group, where values are squared on the way.
  template <bool kSquared>
  TOWERS_HD W window_sum(int i) const {
    W sum = 0;
    TOWERS_UNROLL
    for (int k = i; k <= i + 2 * kNormRadius; ++k) {
      const W value = k < 4 ? before.at[k % 4] : k < 8 ? own.at[k % 4] : after.at[k % 4];
      sum += kSquared ? value * value : value;
    }
    return sum;
  }
};

// `values`: a pixel's channels, `groups` groups of four.
template <class T>
TOWERS_HD inline NormNeighbours<Wide<T>> neighbours_at(int groups, int group, const T* values) {
  const Lanes<Wide<T>, 4> none = filled<4>(Wide<T>{0});
  return {group > 0 ? load<4>(values + 4 * group - 4) : none, load<4>(values + 4 * group),
          group + 1 < groups ? load<4>(values + 4 * group + 4) : none};
}

template <class T>
TOWERS_HD inline Lanes<Wide<T>, 4> normalized_group(const NormParameters<Wide<T>>& n, int groups,
                                                    int group, const T* x) {
  const NormNeighbours<Wide<T>> near = neighbours_at(groups, group, x);
  Lanes<Wide<T>, 4> out;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i)
    out.at[i] =
        near.own.at[i] * norm_powers(n.bias + n.alpha * near.template window_sum<true>(i)).scale;
  return out;
}

// The two halves of the gradient of a group: what its own values know, and, once the products of
// the neighbours are there too, the rest.
template <class W>
struct NormHalf {
  Lanes<W, 4> x, through, products;
};
template <class T>
TOWERS_HD inline NormHalf<Wide<T>> differentiate_group(const NormParameters<Wide<T>>& n, int groups,
                                                       int group, const T* x,
                                                       const Lanes<Wide<T>, 4>& d) {
  const NormNeighbours<Wide<T>> near = neighbours_at(groups, group, x);
  NormHalf<Wide<T>> half;
  half.x = near.own;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i) {
    const NormPowers<Wide<T>> powers =
        norm_powers(n.bias + n.alpha * near.template window_sum<true>(i));
    half.products.at[i] = d.at[i] * near.own.at[i] * powers.scale_over_s;
    half.through.at[i] = d.at[i] * powers.scale;
  }
  return half;
}
template <class W>
TOWERS_HD inline Lanes<W, 4> combine_group(const NormParameters<W>& n, int groups, int group,
                                           const NormHalf<W>& half, const W* products,
                                           bool relu_input) {
  const NormNeighbours<W> near = neighbours_at(groups, group, products);
  Lanes<W, 4> out;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i)
    out.at[i] = norm_gradient(n, half.x.at[i], half.through.at[i],
                              near.template window_sum<false>(i), relu_input);
  return out;
}

}  // namespace towers::cuda
