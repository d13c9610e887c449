#pragma once
// Local response normalization: y = x * s^-beta with s = bias + alpha * (sum of x^2 over the
// channels around). Sums start at the lowest channel, in whatever form of the code.

#include <cmath>
#include <cstddef>

#include "core/host_device.h"
#include "core/net.h"
#include "cuda/lanes.h"

namespace towers::cuda {

struct NormParameters {
  explicit NormParameters(const LocalResponseNorm& norm)
      : radius(norm.depth_radius),
        bias(static_cast<float>(norm.bias)),
        alpha(static_cast<float>(norm.alpha)),
        beta(static_cast<float>(norm.beta)) {}

  int radius;
  float bias, alpha, beta;
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

// s^-beta and s^-(beta + 1).
struct NormPowers {
  float scale, scale_over_s;
};
TOWERS_HD inline NormPowers norm_powers(float s) {  // for kNormBeta
  const float root = reciprocal_square_root(s), inverse = root * root;
  const float scale = inverse * reciprocal_square_root(root);  // s^-1 * s^0.25
  return {scale, scale * inverse};
}
TOWERS_HD inline NormPowers norm_powers(float s, float beta) {
  if (beta == kNormBeta) return norm_powers(s);
  const float scale = std::pow(s, -beta);
  return {scale, scale / s};
}

// ---- One channel of a pixel of any size. x and d_output: the pixel's channels.
TOWERS_HD inline int window_begin(int c, int radius) {
  return c > radius ? c - radius : 0;
}
TOWERS_HD inline int window_end(int c, int radius, int channels) {
  return radius < channels - c ? c + radius + 1 : channels;
}

TOWERS_HD inline NormPowers powers_at(const NormParameters& n, int channels, int c,
                                      const float* x) {
  const int end = window_end(c, n.radius, channels);
  float sum = 0;
  for (int i = window_begin(c, n.radius); i < end; ++i) sum += x[i] * x[i];
  return norm_powers(n.bias + n.alpha * sum, n.beta);
}

TOWERS_HD inline float normalized_at(const NormParameters& n, int channels, int c, const float* x) {
  return x[c] * powers_at(n, channels, c, x).scale;
}

TOWERS_HD inline float norm_gradient(const NormParameters& n, float x, float through, float sum,
                                     bool relu_input) {
  if (relu_input && x <= 0) return 0;
  return through + -2 * n.alpha * n.beta * x * sum;
}

TOWERS_HD inline float norm_gradient_at(const NormParameters& n, int channels, int c,
                                        const float* x, const float* d_output, bool relu_input) {
  const int end = window_end(c, n.radius, channels);
  float sum = 0, through = 0;
  for (int i = window_begin(c, n.radius); i < end; ++i) {
    const NormPowers powers = powers_at(n, channels, i, x);
    sum += d_output[i] * x[i] * powers.scale_over_s;
    if (i == c) through = d_output[i] * powers.scale;
  }
  return norm_gradient(n, x[c], through, sum, relu_input);
}

// ---- Four channels at a time, with the groups before and after them (zeros at the ends).
struct NormNeighbours {
  Lanes<float, 4> before, own, after;

  // The window's sum around channel i of the own group, where values are squared on the way.
  template <bool kSquared>
  TOWERS_HD float window_sum(int i) const {
    float sum = 0;
    TOWERS_UNROLL
    for (int k = i; k <= i + 2 * kNormRadius; ++k) {
      const float value = k < 4 ? before.at[k % 4] : k < 8 ? own.at[k % 4] : after.at[k % 4];
      sum += kSquared ? value * value : value;
    }
    return sum;
  }
};

// `values`: a pixel's channels, `groups` groups of four.
TOWERS_HD inline NormNeighbours neighbours_at(int groups, int group, const float* values) {
  const Lanes<float, 4> none = filled<4>(0.0f);
  return {group > 0 ? load<4>(values + 4 * group - 4) : none, load<4>(values + 4 * group),
          group + 1 < groups ? load<4>(values + 4 * group + 4) : none};
}

TOWERS_HD inline Lanes<float, 4> normalized_group(const NormParameters& n, int groups, int group,
                                                  const float* x) {
  const NormNeighbours near = neighbours_at(groups, group, x);
  Lanes<float, 4> out;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i)
    out.at[i] = near.own.at[i] * norm_powers(n.bias + n.alpha * near.window_sum<true>(i)).scale;
  return out;
}

// The two halves of the gradient of a group: what its own values know, and, once the products of
// the neighbours are there too, the rest.
struct NormHalf {
  Lanes<float, 4> x, through, products;
};
TOWERS_HD inline NormHalf differentiate_group(const NormParameters& n, int groups, int group,
                                              const float* x, const Lanes<float, 4>& d) {
  const NormNeighbours near = neighbours_at(groups, group, x);
  NormHalf half;
  half.x = near.own;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i) {
    const NormPowers powers = norm_powers(n.bias + n.alpha * near.window_sum<true>(i));
    half.products.at[i] = d.at[i] * near.own.at[i] * powers.scale_over_s;
    half.through.at[i] = d.at[i] * powers.scale;
  }
  return half;
}
TOWERS_HD inline Lanes<float, 4> combine_group(const NormParameters& n, int groups, int group,
                                               const NormHalf& half, const float* products,
                                               bool relu_input) {
  const NormNeighbours near = neighbours_at(groups, group, products);
  Lanes<float, 4> out;
  TOWERS_UNROLL
  for (int i = 0; i < 4; ++i)
    out.at[i] =
        norm_gradient(n, half.x.at[i], half.through.at[i], near.window_sum<false>(i), relu_input);
  return out;
}

}  // namespace towers::cuda
