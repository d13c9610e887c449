#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/distortion.h"
#include "tests/core/staged_input.h"
#include "tests/reference/safetensors.h"
#include "tests/support.h"

namespace towers {
namespace {

constexpr std::size_t kImageBytes = 3 * 32 * 32;
constexpr std::size_t kValues = 3 * kCropPixels;

std::vector<float> distorted(const std::uint8_t* planes, const Distortion& d) {
  std::vector<float> out(kValues);
  distort(planes, d, out.data());
  return out;
}

// TensorFlow works in float32 throughout, so its pixels (up to 255, with brightness more) are off
// by some roundings of 7.6e-6 before they are divided by the standard deviation. Where that is
// small, the difference is as much larger; elsewhere `tolerance` holds.
double tolerance_for(double stddev, double tolerance) {
  return stddev < 1 ? 8e-5 / std::max(stddev, 1 / std::sqrt(1728.0)) : tolerance;
}

void check_near(const std::vector<float>& got, const float* want, double tolerance) {
  double worst = 0;
  for (std::size_t i = 0; i < kValues; ++i)
    worst = std::max(worst, std::abs(double{got[i]} - double{want[i]}));
  CHECK(worst < tolerance);
}

// What TensorFlow wrote about the values of one image.
void check_summary(const std::vector<float>& got, const nlohmann::json& want, double tolerance) {
  const test::Image image(got.begin(), got.end());
  CHECK(test::mean(image) == Approx(want["mean"].get<double>()).margin(tolerance));
  CHECK(test::stddev(image) == Approx(want["std"].get<double>()).margin(tolerance));
  const auto [low, high] = std::minmax_element(image.begin(), image.end());
  CHECK(*low == Approx(want["min"].get<double>()).margin(tolerance));
  CHECK(*high == Approx(want["max"].get<double>()).margin(tolerance));
  const std::vector<double> first = want["first"], last = want["last"];
  for (std::size_t i = 0; i < first.size(); ++i)
    CHECK(image[i] == Approx(first[i]).margin(tolerance));
  for (std::size_t i = 0; i < last.size(); ++i)
    CHECK(image[kValues - last.size() + i] == Approx(last[i]).margin(tolerance));
}

void set_crop(std::vector<std::uint8_t>& planes, const std::vector<double>& crop) {
  for (int y = 0; y < kCropSide; ++y)
    for (int x = 0; x < kCropSide; ++x)
      for (int c = 0; c < 3; ++c)
        planes[static_cast<std::size_t>(c * 1024 + (y + 4) * 32 + x + 4)] =
            static_cast<std::uint8_t>(crop[test::at(y, x, c)]);
}

}  // namespace

TEST_CASE("Distortions give TensorFlow's values on made images") {
  const reference::Safetensors file(std::filesystem::path(TOWERS_SOURCE_DIR) /
                                    "tests/golden/input_ops.safetensors");
  const std::vector<std::uint8_t> images = file.bytes("images");
  const std::vector<float> evaluation = file.floats("evaluation"),
                           training = file.floats("training"), contrast = file.floats("contrast");
  const std::vector<std::int32_t> draws = file.integers("offsets_and_flip");
  const std::size_t count = images.size() / kImageBytes;
  REQUIRE(count == 5);
  REQUIRE(contrast.size() == 4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* planes = &images[i * kImageBytes];
    INFO("image " << i);
    check_near(distorted(planes, Distortion{}), &evaluation[i * kValues],
               tolerance_for(test::stddev(test::crop(planes, 4, 4)), 1e-6));
    for (std::size_t j = 0; j < contrast.size(); ++j) {
      INFO("draw " << j);
      const Distortion d{draws[3 * j], draws[3 * j + 1], draws[3 * j + 2] != 0, contrast[j]};
      const double stddev = test::stddev(
          test::adjust_contrast(test::crop(planes, d.top, d.left), double{d.contrast}));
      check_near(distorted(planes, d), &training[(i * contrast.size() + j) * kValues],
                 tolerance_for(stddev, 1e-5));
    }
  }
}

TEST_CASE("Distortions give TensorFlow's values on CIFAR-10's first test images") {
  if (test::shared_dir().empty()) return test::skip("the shared golden values are not here");
  const auto golden = test::shared_dir() / "golden";
  const auto json = nlohmann::json::parse(std::ifstream(golden / "input_ops.json"));
  // The images themselves are not among the values, but their central crops, standardized, are:
  // with the crops' mean and standard deviation they give back the bytes.
  const std::vector<float> inputs =
      reference::Safetensors(golden / "forward_backward.safetensors").floats("input");
  for (const auto& image : json["images"]) {
    const std::size_t index = image["index"];
    INFO("image " << index);
    const float* standardized = &inputs[index * kValues];
    const double mean = image["central_crop"]["mean"], stddev = image["central_crop"]["std"];
    std::vector<double> crop(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      const double value = double{standardized[i]} * stddev + mean;
      crop[i] = std::round(value);
      REQUIRE(std::abs(value - crop[i]) < 1e-3);
    }
    std::vector<std::uint8_t> planes(kImageBytes);
    set_crop(planes, crop);
    check_near(distorted(planes.data(), Distortion{}), standardized, 1e-6);
    check_summary(distorted(planes.data(), Distortion{}), image["per_image_standardization"], 1e-6);
    check_summary(distorted(planes.data(), {4, 4, false, 1.5f}),
                  image["adjust_brightness(+20), adjust_contrast(1.5), per_image_standardization"],
                  1e-5);
    // The stages that are seen only before standardization.
    const auto flat = [](const test::Image& x) { return std::vector<float>(x.begin(), x.end()); };
    check_summary(flat(test::flip_left_right(crop)), image["flip_left_right"], 1e-5);
    check_summary(flat(test::adjust_brightness(crop, 20)), image["adjust_brightness(+20)"], 1e-5);
    for (const auto& [name, factor] :
         {std::pair{"adjust_contrast(0.5)", 0.5}, {"adjust_contrast(1.5)", 1.5}})
      check_summary(flat(test::adjust_contrast(crop, factor)), image[name], 1e-5 * 255);
  }
  const auto& made = json["made_images_per_image_standardization"];
  std::vector<std::uint8_t> planes(kImageBytes, 7);
  check_summary(distorted(planes.data(), Distortion{}), made["constant 7"], 0);
  planes[4 * 32 + 4] = 8;
  // TensorFlow's mean of the image is off by a rounding of 7, which the tiny deviation enlarges
  // 41-fold.
  check_summary(distorted(planes.data(), Distortion{}), made["constant 7, first value 8"],
                41 * 5e-7);
}

}  // namespace towers
