#include "core/distortion.h"

#include <cstring>

// The release build is for any x86-64; the loops below gain about threefold from AVX2, so they are
// built twice and chosen once, at run time. The bits are the same: sums are of integers, each
// output value is one multiplication and one addition, and this file is built with
// -ffp-contract=off lest a compiler fuse them in one build only.
#if defined(__x86_64__) && defined(__GNUC__)
#define TOWERS_DISTORT_AVX2 1
#else
#define TOWERS_DISTORT_AVX2 0
#endif

namespace towers {
namespace {

constexpr int kSourceSide = 32;

// Contiguous planes let the compiler use full vectors: rows of 24 are no multiple of them.
struct Crop {
  alignas(64) std::uint8_t channel[3][kCropPixels];
};

[[gnu::always_inline]] inline void copy_crop(const std::uint8_t* planes, const Distortion& d,
                                             Crop& crop) {
  const std::uint8_t* from = planes + d.top * kSourceSide + d.left;
  for (auto& channel : crop.channel) {
    for (int y = 0; y < kCropSide; ++y) {
      const std::uint8_t* row = from + y * kSourceSide;
      std::uint8_t* to = channel + y * kCropSide;
      if (d.flip)
        for (int x = 0; x < kCropSide; ++x) to[x] = row[kCropSide - 1 - x];
      else
        std::memcpy(to, row, kCropSide);
    }
    from += kSourceSide * kSourceSide;
  }
}

[[gnu::always_inline]] inline ChannelSums sum_channels(const Crop& crop) {
  ChannelSums sums;
  for (int c = 0; c < 3; ++c) {
    std::uint32_t values = 0;
    std::uint32_t squares = 0;
    for (int i = 0; i < kCropPixels; ++i) {
      const std::uint32_t x = crop.channel[c][i];
      values += x;
      squares += x * x;
    }
    sums.values[c] = values;
    sums.squares[c] = squares;
  }
  return sums;
}

[[gnu::always_inline]] inline void distort_body(const std::uint8_t* planes, const Distortion& d,
                                                float* out) {
  Crop crop;
  copy_crop(planes, d, crop);
  const Affine a = standardizing_affine(sum_channels(crop), d.contrast);
  for (int i = 0; i < kCropPixels; ++i)
    for (int c = 0; c < 3; ++c)
      out[3 * i + c] =
          (static_cast<float>(crop.channel[c][i]) - a.center[c]) * a.scale + a.offset[c];
}

void distort_generic(const std::uint8_t* planes, const Distortion& d, float* out) {
  distort_body(planes, d, out);
}

#if TOWERS_DISTORT_AVX2
[[gnu::target("avx2")]] void distort_avx2(const std::uint8_t* planes, const Distortion& d,
                                          float* out) {
  distort_body(planes, d, out);
}
#endif

constexpr DistortKernel kKernels[] = {
    {"generic", distort_generic},
#if TOWERS_DISTORT_AVX2
    {"avx2", distort_avx2},
#endif
};

}  // namespace

std::span<const DistortKernel> distort_kernels() {
#if TOWERS_DISTORT_AVX2
  if (!__builtin_cpu_supports("avx2")) return std::span(kKernels).first(1);
#endif
  return kKernels;
}

void distort(const std::uint8_t* planes, const Distortion& distortion, float* out) {
  static const DistortKernel best = distort_kernels().back();
  best.run(planes, distortion, out);
}

}  // namespace towers
