#pragma once
// The input on the device, for one thread of a block that makes one image: which bytes of which
// record it takes, and how the block's sums become the image (core/distortion.h has the formula).

#include <cstddef>
#include <cstdint>

#include "core/distortion.h"
#include "core/host_device.h"

namespace towers::cuda {

// CIFAR-10's record: the label, then the planes R, G and B of 32 x 32 bytes.
inline constexpr int kRecordSide = 32;
inline constexpr int kRecordBytes = 1 + 3 * kRecordSide * kRecordSide;

// A training set in device memory and the order of its examples.
struct TrainingSet {
  const std::uint8_t* records = nullptr;  // [size][kRecordBytes]
  std::uint32_t size = 0;
  // [epochs][size]: epoch e's permutation (core/order.h) in row e % epochs. A batch needs those of
  // all epochs that it reaches into. Null: the records are the batch's alone, in its order.
  const std::uint32_t* orders = nullptr;
  std::uint32_t epochs = 0;
  std::uint64_t seed = 0;
};

// Example i of the batch that begins at a position of the endless stream.
TOWERS_HD inline std::uint32_t example_at(const TrainingSet& set, std::uint64_t first_position,
                                          std::uint32_t i) {
  if (set.orders == nullptr) return i;
  const std::uint64_t position = first_position + i, epoch = position / set.size;
  return set.orders[epoch % set.epochs * set.size + position % set.size];
}
TOWERS_HD inline const std::uint8_t* record_at(const std::uint8_t* records, std::uint64_t example) {
  return records + example * static_cast<std::uint64_t>(kRecordBytes);
}

// Thread t takes the values t, t + kDistortThreads, ... of the image (HWC), so one channel alone.
inline constexpr int kDistortThreads = 192;
inline constexpr int kDistortTurns = 3 * kCropPixels / kDistortThreads;
static_assert(kDistortThreads % 3 == 0 && kDistortTurns * kDistortThreads == 3 * kCropPixels);

// The byte that value `index` of the image is made of.
TOWERS_HD inline std::uint8_t source_byte(const std::uint8_t* record, const Distortion& d,
                                          int index) {
  const int pixel = index / 3, channel = index % 3;
  const int y = pixel / kCropSide, x = pixel % kCropSide;
  const int source_x = d.flip ? kCropSide - 1 - x : x;
  return record[1 + (channel * kRecordSide + d.top + y) * kRecordSide + d.left + source_x];
}

// The sum of bytes and that of their squares in one word: neither reaches 2^32 in a crop.
TOWERS_HD constexpr std::uint64_t sum_word(std::uint8_t byte) {
  return std::uint64_t{byte} << 32 | std::uint64_t{byte} * byte;
}
// words: of R, G and B.
TOWERS_HD inline ChannelSums channel_sums(const std::uint64_t* words) {
  ChannelSums sums{};
  for (int c = 0; c < 3; ++c) {
    sums.values[c] = static_cast<std::uint32_t>(words[c] >> 32);
    sums.squares[c] = static_cast<std::uint32_t>(words[c]);
  }
  return sums;
}

TOWERS_HD inline float distorted(std::uint8_t byte, const Affine& affine, int channel) {
  return (static_cast<float>(byte) - affine.center[channel]) * affine.scale +
         affine.offset[channel];
}

}  // namespace towers::cuda
