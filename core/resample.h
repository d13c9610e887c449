#pragma once
// A picture of any size as a small square one: what `towers predict` shows the net.

#include <cstdint>
#include <span>

namespace towers {

// The central square of an RGB picture (pixels row by row, three bytes each), brought to
// side x side: its R, G and B planes, row-major, as a record of CIFAR-10 has them.
//
// The square's side is the shorter of width and height; an odd pixel more is left out at the right
// or the bottom. Both directions are filtered by a triangle as wide as two source pixels, or as two
// target pixels where those are larger (bilinear interpolation with antialiasing), in double, and
// rounded once. A picture that has the target's size comes out unchanged.
//
// Throws std::invalid_argument where a size is not positive or the spans do not fit the sizes.
void resample_central_square(std::span<const std::uint8_t> rgb, int width, int height, int side,
                             std::span<std::uint8_t> planes);

}  // namespace towers
