#pragma once
// The training input's distortion of one image, and the evaluation input's crop: a multiply-add per
// value, since brightness, contrast and standardization are affine in each channel once the channel
// sums of the crop are known. The draws and coefficients are shared by the host pipeline and CUDA.

#include <cmath>
#include <cstdint>
#include <span>

#include "core/host_device.h"
#include "core/philox.h"

namespace towers {

constexpr int kCropSide = 24;
constexpr int kCropPixels = kCropSide * kCropSide;
constexpr int kCropOffsets = 9;  // 32 - 24 + 1

struct Distortion {
  int top = 4;  // crop offset, 0..8
  int left = 4;
  bool flip = false;
  float contrast = 1.0f;  // [0.2, 1.8)
};

// The draw for the example at position `position` (0, 1, 2, ...) of the endless training stream:
// crop offset uniform over 9 x 9, flip with probability 1/2, contrast uniform in [0.2, 1.8).
// Brightness is not drawn: it adds one value to every pixel, contrast keeps each channel's mean,
// and standardization subtracts the mean of all, so that the value vanishes.
TOWERS_HD inline Distortion draw_distortion(std::uint64_t seed, std::uint64_t position) {
  const PhiloxBlock r = philox(seed, Stream::distortion, position);
  Distortion d;
  d.top = static_cast<int>(uniform_below(r.word[0], kCropOffsets));
  d.left = static_cast<int>(uniform_below(r.word[1], kCropOffsets));
  d.flip = (r.word[2] >> 31) != 0;
  // The product of two 24-bit values is exact in double, so a fused multiply-add changes nothing.
  d.contrast = static_cast<float>(0.2 + double{1.6f} * double{uniform(r.word[3])});
  return d;
}

// Sums over the crop's pixels, for R, G and B: exact, at most 576 * 255^2.
struct ChannelSums {
  std::uint32_t values[3];
  std::uint32_t squares[3];
};

// An output value of channel c is (x - center[c]) * scale + offset[c]. The centers are whole
// numbers near the channels' means, so the difference is exact and nothing cancels afterwards, even
// in a nearly constant image, where scale is large.
struct Affine {
  float center[3];
  float scale;
  float offset[3];
};

// Contrast about each channel's mean m_c by the factor f, then standardization over all 1728 values
// by max(stddev, 1/sqrt(1728)), in one. With M the mean of all, contrast leaves m_c and M alone and
//   variance = mean over c of (f^2 var_c + (m_c - M)^2),
// where both terms come from integers and neither can be negative.
TOWERS_HD inline Affine standardizing_affine(const ChannelSums& sums, float contrast) {
  constexpr std::int64_t n = kCropPixels;
  const std::int64_t total = std::int64_t{sums.values[0]} + sums.values[1] + sums.values[2];
  std::int64_t within = 0;   // n^2 * sum of var_c
  std::int64_t between = 0;  // (3n)^2 * sum of (m_c - M)^2
  for (int c = 0; c < 3; ++c) {
    const std::int64_t sum = sums.values[c];
    const std::int64_t from_mean = 3 * sum - total;
    within += n * sums.squares[c] - sum * sum;
    between += from_mean * from_mean;
  }
  const double f = double{contrast};
  const double variance =
      (9.0 * f * f * static_cast<double>(within) + static_cast<double>(between)) /
      static_cast<double>(27 * n * n);
  const double floor = 0.024056261216234408;  // 1 / sqrt(1728)
  const double stddev = std::sqrt(variance);
  const double inverse = 1.0 / (stddev > floor ? stddev : floor);

  Affine affine;
  affine.scale = static_cast<float>(f * inverse);
  for (int c = 0; c < 3; ++c) {
    const std::int64_t sum = sums.values[c];
    const std::int64_t center = (sum + n / 2) / n;
    const double contrasted = f * static_cast<double>(3 * (center * n - sum));
    affine.center[c] = static_cast<float>(center);
    affine.offset[c] = static_cast<float>((contrasted + static_cast<double>(3 * sum - total)) *
                                          inverse / static_cast<double>(3 * n));
  }
  return affine;
}

// planes: R, G, B of 32 x 32 bytes. out: 24 x 24 x 3 floats, HWC: crop, flip, contrast,
// standardized
// ((x - mean) / max(stddev, 1/sqrt(1728)) over all values). Distortion{} is the evaluation input.
void distort(const std::uint8_t* planes, const Distortion& distortion, float* out);

// The builds of distort() that this processor can run, fastest last, which is the one in use. All
// give the same bits.
struct DistortKernel {
  const char* name;  // "generic", "avx2"
  void (*run)(const std::uint8_t* planes, const Distortion& distortion, float* out);
};
std::span<const DistortKernel> distort_kernels();

}  // namespace towers
