#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/distortion.h"
#include "data/dataset.h"
#include "data/evaluation_input.h"

namespace towers::data {
namespace {

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
std::uint64_t fingerprint(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// The first `known` examples give each class's mean evaluation input; of the others, the share that
// lies nearest to its own class's: a linear classifier, as good as one gets without training.
double nearest_mean_precision(const Dataset& dataset, std::size_t known) {
  constexpr std::size_t kValues = std::size_t{3} * kCropPixels;
  std::vector<float> image(kValues);
  std::int32_t label = 0;
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(kValues));
  for (std::size_t i = 0; i < known; ++i) {
    fill_evaluation_batch(dataset, i, 1, image.data(), &label);
    auto& mean = means[static_cast<std::size_t>(label)];
    for (std::size_t j = 0; j < kValues; ++j)
      mean[j] += double{image[j]} * kClasses / static_cast<double>(known);
  }
  int right = 0;
  for (std::size_t i = known; i < dataset.size(); ++i) {
    fill_evaluation_batch(dataset, i, 1, image.data(), &label);
    std::array<double, kClasses> distance{};
    for (std::size_t c = 0; c < kClasses; ++c)
      for (std::size_t j = 0; j < kValues; ++j)
        distance[c] += (double{image[j]} - means[c][j]) * (double{image[j]} - means[c][j]);
    const auto nearest = std::min_element(distance.begin(), distance.end()) - distance.begin();
    right += nearest == label ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(dataset.size() - known);
}

}  // namespace

TEST_CASE("The synthetic set has CIFAR-10's size, as many examples of each class, and none twice") {
  std::vector<std::uint64_t> images;
  for (const auto& [split, size] :
       {std::pair{Split::train, kTrainExamples}, {Split::test, kTestExamples}}) {
    const Dataset dataset = make_synthetic(split);
    REQUIRE(dataset.size() == static_cast<std::size_t>(size));
    CHECK(dataset.description == "synthetic");
    std::array<int, kClasses> counts{};
    for (std::size_t i = 0; i < dataset.size(); ++i) {
      REQUIRE(dataset.label(i) < kClasses);
      ++counts[static_cast<std::size_t>(dataset.label(i))];
      images.push_back(fingerprint({dataset.image(i), dataset.image(i) + kImageBytes}));
    }
    for (const int count : counts) CHECK(count == size / kClasses);
  }
  std::sort(images.begin(), images.end());
  CHECK(std::adjacent_find(images.begin(), images.end()) == images.end());
}

// Optimization, vectorization and another compiler must not change a byte: runs on it are compared.
TEST_CASE("The synthetic set is the same everywhere") {
  CHECK(fingerprint(make_synthetic(Split::test).records) == 0x78b8b19535369f88);
  CHECK(fingerprint(make_synthetic(Split::test, 12345678901234).records) == 0xd4f0017f6573ccfc);
}

TEST_CASE("Every synthetic image has something to see, and uses the range of bytes") {
  const Dataset dataset = make_synthetic(Split::test);
  std::array<int, 256> used{};
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    double sum = 0, squares = 0;
    for (int j = 0; j < kImageBytes; ++j) {
      const int x = dataset.image(i)[j];
      ++used[static_cast<std::size_t>(x)];
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kImageBytes;
    REQUIRE(std::sqrt(squares / kImageBytes - mean * mean) > 15);
  }
  CHECK(std::all_of(used.begin(), used.end(), [](int count) { return count > 0; }));
}

// 90 % is what the tutorial's net reaches in 1,000 steps; mean images must be of little help.
TEST_CASE("The synthetic set is beyond a linear classifier") {
  const double precision = nearest_mean_precision(make_synthetic(Split::test), 7000);
  CHECK(precision < 0.3);
  CHECK(precision > 0.1);
}

}  // namespace towers::data
