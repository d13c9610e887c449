#include "core/distortion.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/core/staged_input.h"

namespace towers {
namespace {

using Planes =
    std::vector<std::uint8_t>;  // exactly one image, so that a sanitizer sees a step outside

Planes noise_image(std::uint64_t seed) {
  Planes planes(3 * 32 * 32);
  for (std::size_t i = 0; i < planes.size(); ++i)
    planes[i] = static_cast<std::uint8_t>(philox(seed, Stream{99}, i).word[0] >> 24);
  return planes;
}

Planes constant_image(std::uint8_t r, std::uint8_t g, std::uint8_t b) {
  Planes planes(3 * 32 * 32);
  std::fill_n(planes.begin(), 1024, r);
  std::fill_n(planes.begin() + 1024, 1024, g);
  std::fill_n(planes.begin() + 2048, 1024, b);
  return planes;
}

std::vector<float> distorted(const Planes& planes, const Distortion& d) {
  std::vector<float> out(3 * kCropPixels);
  distort(planes.data(), d, out.data());
  return out;
}

// float rounds to 6e-8 of a value, and there are three roundings.
void check_equal(const std::vector<float>& got, const test::Image& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(double{got[i]} - want[i]) / std::max(1.0, std::abs(want[i])));
  CHECK(worst < 5e-7);
}

}  // namespace

TEST_CASE("One multiply-add gives what the stages give, and brightness vanishes") {
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Planes planes = noise_image(i);
    const Distortion d = draw_distortion(3, i);
    const double brightness = -63 + 126 * double{uniform(philox(4, Stream{98}, i).word[0])};
    INFO("image " << i << ", brightness " << brightness);
    check_equal(distorted(planes, d), test::staged(planes.data(), d, brightness));
  }
}

TEST_CASE("The default distortion is the evaluation input: the central crop, standardized") {
  const Planes planes = noise_image(1);
  check_equal(distorted(planes, Distortion{}),
              test::per_image_standardization(test::crop(planes.data(), 4, 4)));
}

TEST_CASE("Every offset of the crop stays within the image") {
  const Planes planes = noise_image(2);
  for (int top = 0; top < kCropOffsets; ++top)
    for (int left = 0; left < kCropOffsets; ++left)
      for (const bool flip : {false, true}) {
        const Distortion d{top, left, flip, 1.0f};
        check_equal(distorted(planes, d), test::staged(planes.data(), d, 0));
      }
}

TEST_CASE("A mirrored image has the mirrored values, bit for bit") {
  const Planes planes = noise_image(3);
  const std::vector<float> plain = distorted(planes, {2, 7, false, 0.7f});
  const std::vector<float> mirrored = distorted(planes, {2, 7, true, 0.7f});
  for (int y = 0; y < kCropSide; ++y)
    for (int x = 0; x < kCropSide; ++x)
      for (int c = 0; c < 3; ++c)
        REQUIRE(mirrored[test::at(y, x, c)] == plain[test::at(y, kCropSide - 1 - x, c)]);
}

TEST_CASE("Images with next to no contrast stay finite and exact") {
  SECTION("one grey: all zeros, and not a rounding more") {
    for (const std::uint8_t grey : std::array<std::uint8_t, 4>{0, 7, 200, 255})
      for (const float contrast : {0.2f, 1.0f, 1.7999999f})
        CHECK(distorted(constant_image(grey, grey, grey), {0, 0, false, contrast}) ==
              std::vector<float>(3 * kCropPixels, 0.0f));
  }
  SECTION("one pixel differs: the floor of the standard deviation counts") {
    for (const std::uint8_t grey : std::array<std::uint8_t, 3>{7, 200, 254}) {
      Planes planes = constant_image(grey, grey, grey);
      planes[4 * 32 + 4] = static_cast<std::uint8_t>(grey + 1);
      for (const float contrast : {0.2f, 1.0f, 1.5f}) {
        const Distortion d{4, 4, false, contrast};
        check_equal(distorted(planes, d), test::staged(planes.data(), d, 0));
      }
    }
  }
  SECTION("one colour: contrast within the channels is nothing, between them it stays") {
    const Planes planes = constant_image(30, 140, 250);
    const Distortion d{8, 8, true, 0.3f};
    check_equal(distorted(planes, d), test::staged(planes.data(), d, 0));
    CHECK(distorted(planes, d) == distorted(planes, {0, 0, false, 1.7f}));
  }
}

TEST_CASE("Black and white fill the sums to the brim") {
  Planes planes = constant_image(255, 255, 255);
  const Distortion d{0, 0, false, 1.7f};
  CHECK(distorted(planes, d) == std::vector<float>(3 * kCropPixels, 0.0f));
  for (std::size_t i = 0; i < planes.size(); ++i) planes[i] = i % 2 == 0 ? 255 : 0;
  const std::vector<float> out = distorted(planes, d);
  CHECK(out.front() == Approx(1).margin(1e-6));
  CHECK(out.back() == Approx(-1).margin(1e-6));
}

TEST_CASE("Every build of the distortion gives the same bits") {
  const auto kernels = distort_kernels();
  REQUIRE(!kernels.empty());
  CHECK(kernels.front().name == std::string("generic"));
#if defined(__x86_64__) && defined(__GNUC__)
  CHECK(kernels.size() == (__builtin_cpu_supports("avx2") ? 2 : 1));
#endif
  std::vector<float> first(3 * kCropPixels), other(3 * kCropPixels);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Planes planes = noise_image(i);
    const Distortion d = draw_distortion(5, i);
    kernels.front().run(planes.data(), d, first.data());
    for (const DistortKernel& kernel : kernels.subspan(1)) {
      kernel.run(planes.data(), d, other.data());
      INFO(kernel.name << ", image " << i);
      REQUIRE(std::memcmp(first.data(), other.data(), first.size() * sizeof(float)) == 0);
    }
    REQUIRE(distorted(planes, d) == first);
  }
}

}  // namespace towers
