#pragma once
// The training input's distortion of one image, and the evaluation input's crop: a multiply-add per
// pixel and channel, since brightness, contrast and standardization are affine once the channel sums
// of the crop are known (brightness cancels). Shared by the host pipeline and CUDA.

#include <cstdint>

#include "core/host_device.h"

namespace towers {

constexpr int kCropSide = 24;

struct Distortion {
  int top = 4;            // crop offset, 0..8
  int left = 4;
  bool flip = false;
  float contrast = 1.0f;  // [0.2, 1.8)
};

// The draw for the example at position `position` (0, 1, 2, ...) of the endless training stream.
TOWERS_HD Distortion draw_distortion(std::uint64_t seed, std::uint64_t position);

// planes: R, G, B of 32 x 32 bytes. out: 24 x 24 x 3 floats, HWC, standardized:
// (x - mean) / max(stddev, 1/sqrt(1728)) over all values.
void distort(const std::uint8_t* planes, const Distortion& distortion, float* out);

}  // namespace towers
