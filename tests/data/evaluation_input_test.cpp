#include "data/evaluation_input.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/distortion.h"
#include "tests/core/staged_input.h"

namespace towers::data {
namespace {

constexpr std::size_t kImageValues = std::size_t{3} * kCropPixels;

Dataset counting_dataset(std::size_t size) {
  Dataset dataset;
  dataset.records.resize(size * kRecordBytes);
  for (std::size_t i = 0; i < size; ++i) {
    dataset.records[i * kRecordBytes] = static_cast<std::uint8_t>((i * 7) % kClasses);
    for (std::size_t j = 1; j < kRecordBytes; ++j)
      dataset.records[i * kRecordBytes + j] = static_cast<std::uint8_t>(j * (i + 3) >> 4);
  }
  return dataset;
}

}  // namespace

TEST_CASE("Evaluation batches hold the central crops, standardized, in file order") {
  const Dataset dataset = counting_dataset(10);
  std::vector<float> images(4 * kImageValues, -99.0f);
  std::vector<std::int32_t> labels(4, -1);
  fill_evaluation_batch(dataset, 6, 3, images.data(), labels.data());
  CHECK(labels == std::vector<std::int32_t>{2, 9, 6, -1});
  for (std::size_t i = 0; i < 3; ++i) {
    const test::Image want =
        test::per_image_standardization(test::crop(dataset.image(6 + i), 4, 4));
    for (std::size_t j = 0; j < kImageValues; ++j)
      REQUIRE(double{images[i * kImageValues + j]} == Approx(want[j]).margin(1e-6));
  }
  CHECK(std::vector<float>(images.begin() + 3 * kImageValues, images.end()) ==
        std::vector<float>(kImageValues, -99.0f));
}

TEST_CASE("Evaluation batches end with the data set") {
  const Dataset dataset = counting_dataset(10);
  std::vector<float> images(11 * kImageValues);
  std::vector<std::int32_t> labels(11);
  const auto fill = [&](std::size_t begin, int count) {
    fill_evaluation_batch(dataset, begin, count, images.data(), labels.data());
  };
  CHECK_NOTHROW(fill(0, 10));
  CHECK_NOTHROW(fill(10, 0));
  CHECK_THROWS_AS(fill(0, 11), std::out_of_range);
  CHECK_THROWS_AS(fill(9, 2), std::out_of_range);
  CHECK_THROWS_AS(fill(11, 0), std::out_of_range);
  CHECK_THROWS_AS(fill(0, -1), std::out_of_range);
}

}  // namespace towers::data
