// The loss on the device against the reference.

#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"
#include "tests/reference/layers.h"

namespace towers::cuda::test {
namespace {

struct Loss {
  std::vector<float> losses, d_logits;
  float mean = 0;
};

Loss loss_on_device(int classes, const std::vector<float>& logits,
                    const std::vector<std::int32_t>& labels) {
  TestDevice device;
  const std::size_t batch = labels.size();
  const float* values = device.put(logits);
  const std::int32_t* wanted = device.put(labels);
  float* d_logits = device.room<float>(logits.size());
  float* losses = device.room<float>(batch);
  float* mean = device.room<float>(1);
  softmax_loss<float>(device.stream(), static_cast<int>(batch), classes, values, wanted, nullptr,
                      d_logits, losses, mean);
  const Loss loss{device.get(losses, batch), device.get(d_logits, logits.size()),
                  device.get(mean, 1)[0]};
  softmax_loss<float>(device.stream(), static_cast<int>(batch), classes, values, wanted, nullptr,
                      nullptr, losses, mean);
  CHECK(same_bits(device.get(losses, batch), loss.losses));  // without the gradient
  CHECK(same_bits(device.get(mean, 1), {loss.mean}));
  return loss;
}

std::vector<std::int32_t> labels_of(std::size_t batch, int classes) {
  std::vector<std::int32_t> labels(batch);
  for (std::size_t i = 0; i < batch; ++i)
    labels[i] = static_cast<std::int32_t>(7 * i % static_cast<std::size_t>(classes));
  return labels;
}

TEST_CASE("the loss and its gradient for any batch and number of classes") {
  for (const int classes : {1, 2, 3, 10, 17, 32, 33, 1000})
    for (const std::size_t batch :
         std::initializer_list<std::size_t>{1, 2, 31, 128, 255, 256, 257, 600}) {
      if (classes == 1000 && batch > 31) continue;
      CAPTURE(classes, batch);
      const std::size_t width = static_cast<std::size_t>(classes);
      const std::vector<float> logits = values_of(batch * width, 1, 5);
      const std::vector<std::int32_t> labels = labels_of(batch, classes);
      const Loss got = loss_on_device(classes, logits, labels);
      const std::vector<double> wide = reference::doubles(logits);
      std::vector<double> gradient(logits.size()), losses(batch);
      double mean = 0;
      for (std::size_t i = 0; i < batch; ++i) {
        losses[i] = reference::softmax_cross_entropy(classes, wide.data() + i * width, labels[i],
                                                     gradient.data() + i * width);
        mean += losses[i] / static_cast<double>(batch);
      }
      for (double& g : gradient) g /= static_cast<double>(batch);
      CHECK(std::abs(static_cast<double>(got.mean) - mean) < 1e-6 * (1 + mean));
      for (std::size_t i = 0; i < batch; ++i)
        REQUIRE(std::abs(static_cast<double>(got.losses[i]) - losses[i]) < 2e-6);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        REQUIRE(std::abs(static_cast<double>(got.d_logits[i]) - gradient[i]) <
                3e-7 / static_cast<double>(batch));
    }
}

TEST_CASE("large logits do not overflow the loss") {
  const Loss got = loss_on_device(3, {3e38f, -3e38f, 0, 1000, 1000, -1000}, {0, 1});
  CHECK(got.losses[0] == 0);
  CHECK(got.losses[1] == Approx(std::log(2.0)));
  CHECK(got.d_logits == std::vector<float>{0, 0, 0, 0.25f, -0.25f, 0});
}

TEST_CASE("a logit that is not finite shows in its image's loss and gradient, and in the mean") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), infinity})
    for (const std::size_t batch : std::initializer_list<std::size_t>{5, 300}) {
      std::vector<float> logits = values_of(batch * 10, 1, 5);
      logits[36] = poison;
      const Loss got = loss_on_device(10, logits, labels_of(batch, 10));
      CHECK_FALSE(std::isfinite(got.mean));
      for (std::size_t i = 0; i < batch; ++i) CHECK(std::isfinite(got.losses[i]) == (i != 3));
      for (std::size_t i = 0; i < logits.size(); ++i)
        REQUIRE(std::isnan(got.d_logits[i]) == (i / 10 == 3));
    }
  // -infinity is a probability of zero: all is well unless it is the label's.
  const Loss got = loss_on_device(2, {-infinity, 1, -infinity, 1}, {1, 0});
  CHECK(got.losses == std::vector<float>{0, infinity});
  CHECK(got.d_logits == std::vector<float>{0, 0, -0.5f, 0.5f});
}

}  // namespace
}  // namespace towers::cuda::test
