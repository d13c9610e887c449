// The input made on the device against the host's pipeline.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "core/order.h"
#include "cuda/kernels.h"
#include "data/dataset.h"
#include "data/pipeline.h"
#include "tests/cuda/device.h"

namespace towers::cuda::test {
namespace {

constexpr std::size_t kValues = std::size_t{3} * kCropPixels;

std::shared_ptr<void> zeroed(std::size_t bytes) {
  return {std::aligned_alloc(64, (bytes + 63) / 64 * 64), [](void* p) { std::free(p); }};
}

// The first `size` images of the made-up set, the last one black, the one before nearly so.
data::Dataset small_set(std::size_t size) {
  static const data::Dataset all = data::make_synthetic(data::Split::test);
  data::Dataset set{"small",
                    {all.records.begin(),
                     all.records.begin() + static_cast<std::ptrdiff_t>(size * data::kRecordBytes)}};
  std::fill(set.records.end() - data::kImageBytes, set.records.end(), std::uint8_t{0});
  if (size > 1) {
    const auto record = set.records.end() - 2 * data::kRecordBytes;
    std::fill(record + 1, record + data::kRecordBytes, std::uint8_t{200});
    *(record + 700) = 201;
  }
  return set;
}

void require_close(const std::vector<float>& got, const float* want) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i / kValues, i % kValues);
    // Standardized values reach some tens where an image is nearly constant.
    REQUIRE(std::abs(got[i] - want[i]) <= 1e-5f * std::max(1.0f, std::abs(want[i])));
  }
}

void check_training(std::size_t size, int batch, std::uint64_t seed, std::uint64_t position,
                    std::uint32_t epochs) {
  CAPTURE(size, batch, seed, position, epochs);
  const data::Dataset set = small_set(size);
  data::Pipeline pipeline(set, {batch, 1, 0, seed, position}, zeroed);
  const Batch want = pipeline.next();

  TestDevice device;
  std::vector<std::uint32_t> orders(epochs * size);
  const std::uint64_t first = position / size;
  for (std::uint64_t epoch = first; epoch < first + epochs; ++epoch) {
    const std::vector<std::uint32_t> order =
        epoch_permutation(seed, epoch, static_cast<std::uint32_t>(size));
    std::copy(order.begin(), order.end(),
              orders.begin() + static_cast<std::ptrdiff_t>(epoch % epochs * size));
  }
  const std::size_t count = static_cast<std::size_t>(batch);
  float* images = device.room<float>(count * kValues);
  std::int32_t* labels = device.room<std::int32_t>(count);
  training_batch(
      device.stream(),
      {device.put(set.records), static_cast<std::uint32_t>(size), device.put(orders), epochs, seed},
      position, batch, images, labels);
  require_close(device.get(images, count * kValues), want.images);
  CHECK(device.get(labels, count) == std::vector<std::int32_t>(want.labels, want.labels + count));
}

TEST_CASE("the device's training input is the pipeline's") {
  check_training(500, 64, 1, 0, 1);
  check_training(500, 64, 0xfedcba9876543210u, 500 * 7 + 470, 2);  // across two epochs
  check_training(20, 64, 3, 5, 4);                                 // across four
  check_training(3, 7, 5, 3 * (std::uint64_t{1} << 34) + 1, 3);    // a position beyond 32 bits
  check_training(1, 2, 9, 100, 2);
}

TEST_CASE("flips, crops and contrasts of all kinds occur in that comparison") {
  int flips = 0, corners = 0;
  for (std::uint64_t position = 0; position < 64; ++position) {
    const Distortion d = draw_distortion(1, position);
    flips += d.flip;
    corners += d.top == 0 || d.left == 0 || d.top == 8 || d.left == 8;
  }
  CHECK(flips > 16);
  CHECK(flips < 48);
  CHECK(corners > 8);
}

TEST_CASE("a record is what the data set has") {
  CHECK(kRecordBytes == data::kRecordBytes);
  CHECK(kRecordSide == data::kImageSide);
}

}  // namespace
}  // namespace towers::cuda::test
