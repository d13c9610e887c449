// The passes over flat ranges: update, average, sums.

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <vector>

#include "cpu/average.h"
#include "cpu/update.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

std::vector<float> ramp(std::size_t size, float from) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST_CASE("the update moves each value and its average") {
  for_each_target([](SimdTarget target) {
    for (std::size_t size = 1; size <= 70; ++size) {
      const std::vector<float> gradient = ramp(size, -20);
      std::vector<float> value = ramp(size + 1, 5), average = ramp(size + 1, 100);
      const NonFiniteSeen seen = update_kernels(target).update(size, 0.5f, 0.25f, gradient.data(),
                                                               value.data(), average.data());
      CHECK(seen == NonFiniteSeen{});
      for (std::size_t i = 0; i < size; ++i) {  // all exact
        const float expected = 5 + static_cast<float>(i) - 0.5f * gradient[i];
        REQUIRE(value[i] == expected);
        REQUIRE(average[i] ==
                100 + static_cast<float>(i) - 0.25f * (100 + static_cast<float>(i) - expected));
      }
      CHECK(value[size] == 5 + static_cast<float>(size));  // not touched
      CHECK(average[size] == 100 + static_cast<float>(size));
    }
  });
}

TEST_CASE("the update sees a value that is not finite at every place") {
  const float infinity = std::numeric_limits<float>::infinity();
  for_each_target([&](SimdTarget target) {
    const UpdateKernels kernels = update_kernels(target);
    for (const std::size_t size : std::initializer_list<std::size_t>{1, 16, 35})
      for (std::size_t i = 0; i < size; ++i)
        for (const float poison : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
          const auto seen_with = [&](float g, float v, float a) {
            std::vector<float> gradient(size, 1), value(size, 1), average(size, 1);
            gradient[i] = g;
            value[i] = v;
            average[i] = a;
            return kernels.update(size, 0.1f, 0.1f, gradient.data(), value.data(), average.data());
          };
          CAPTURE(size, i, poison);
          REQUIRE(seen_with(poison, 1, 1).gradient);
          REQUIRE_FALSE(seen_with(poison, 1, 1).old_value);
          REQUIRE(seen_with(1, poison, 1).old_value);
          REQUIRE_FALSE(seen_with(1, poison, 1).gradient);
          REQUIRE(seen_with(1, 1, poison) == NonFiniteSeen{false, false, false, true});
        }
    // Finite operands whose result is not.
    float gradient = -3e38f, value = 3e38f, average = 0;
    CHECK(kernels.update(1, 1.0f, 0.1f, &gradient, &value, &average).new_value);
  });
}

TEST_CASE("the largest and the smallest finite values pass") {
  for_each_target([](SimdTarget target) {
    std::vector<float> gradient(33, std::numeric_limits<float>::denorm_min());
    std::vector<float> value(33, std::numeric_limits<float>::max());
    std::vector<float> average(33, std::numeric_limits<float>::max());
    CHECK(update_kernels(target).update(33, 0.1f, 0.1f, gradient.data(), value.data(),
                                        average.data()) == NonFiniteSeen{});
  });
}

TEST_CASE("the average is the sum in tower order over the number of towers") {
  for_each_target([](SimdTarget target) {
    for (const std::size_t size : std::initializer_list<std::size_t>{1, 15, 16, 17, 50})
      for (std::size_t towers = 1; towers <= 5; ++towers) {
        std::vector<std::vector<float>> gradients;
        std::vector<const float*> pointers;
        for (std::size_t t = 0; t < towers; ++t)
          gradients.push_back(ramp(size, 0.1f + 1e6f * static_cast<float>(t % 2)));
        for (const auto& g : gradients) pointers.push_back(g.data());
        std::vector<float> out(size + 1, 7);
        average_kernels(target).average(pointers, 0, size, out.data());
        for (std::size_t i = 0; i < size; ++i) {
          float sum = gradients[0][i];
          for (std::size_t t = 1; t < towers; ++t) sum += gradients[t][i];
          REQUIRE(out[i] == sum / static_cast<float>(towers));
        }
        CHECK(out[size] == 7);
      }
  });
}

TEST_CASE("parts are summed in order, with the scaled range added last") {
  for_each_target([](SimdTarget target) {
    const std::size_t size = 37, stride = 48;
    const std::vector<float> parts = ramp(3 * stride, 0.3f), scaled = ramp(size, 9);
    std::vector<float> out(size);
    update_kernels(target).sum_parts(size, parts.data(), stride, 3, scaled.data(), 0.5f,
                                     out.data());
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(out[i] == parts[i] + parts[stride + i] + parts[2 * stride + i] + 0.5f * scaled[i]);
    update_kernels(target).sum_parts(size, parts.data(), stride, 1, nullptr, 0, out.data());
    CHECK(std::equal(out.begin(), out.end(), parts.begin()));
  });
}

TEST_CASE("the sum of squares of many values keeps its digits") {
  for_each_target([](SimdTarget target) {
    std::vector<float> values(1000003);
    double expected = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(std::sin(static_cast<double>(i)));
      expected += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    CHECK(update_kernels(target).sum_of_squares(values.size(), values.data()) ==
          Approx(expected).epsilon(1e-6));
    CHECK(update_kernels(target).sum_of_squares(0, values.data()) == 0);
  });
}

}  // namespace
}  // namespace towers::cpu::test
