// Rounding to bf16 on every vector target, and which of the two ways to multiply it runs.

#include "cpu/bf16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/arithmetic.h"
#include "cpu/onednn.h"
#include "tests/cpu/support.h"
#include "tests/support.h"

namespace towers::cpu::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> samples() {
  std::vector<float> values{0.0f,         -0.0f,   1.0f,     1.00390625f, 1.01171875f,
                            -1.00390625f, 3.0e38f, 1.0e-37f, kInfinity,   -kInfinity};
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-4, 4);
  while (values.size() < 203) values.push_back(value(random));
  return values;
}

TEST_CASE("every vector target rounds as the scalar function does") {
  std::vector<float> values = samples();
  for (const std::uint32_t bits : {0x7f800001u, 0xffffffffu})
    values.push_back(std::bit_cast<float>(bits));
  for_each_target([&](SimdTarget target) {
    const Bf16Kernels kernels = bf16_kernels(target);
    for (const std::size_t size : {values.size(), std::size_t{1}, std::size_t{0}}) {
      std::vector<Bf16> converted(size);
      std::vector<float> rounded(size);
      kernels.convert(size, values.data(), converted.data());
      kernels.round(size, values.data(), rounded.data());
      for (std::size_t i = 0; i < size; ++i) {
        CAPTURE(i, values[i]);
        CHECK(converted[i] == Bf16(to_bfloat16(values[i])));
        const float expected = from_bfloat16(to_bfloat16(values[i]));
        CHECK(std::memcmp(&rounded[i], &expected, sizeof(float)) == 0);
      }
    }
  });
}

TEST_CASE("relu of fp32 and its gradient by a bf16 output let NaN pass") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_target([&](SimdTarget target) {
    const Bf16Kernels kernels = bf16_kernels(target);
    std::vector<float> y(37, -1.0f), d(37, 2.0f);
    y[3] = nan;
    y[36] = nan;
    y[5] = 0.5f;
    kernels.relu(y.size(), y.data());
    std::vector<Bf16> x(y.size());
    kernels.convert(y.size(), y.data(), x.data());
    kernels.relu_backward(d.size(), x.data(), d.data());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool bad = i == 3 || i == 36;
      CHECK(std::isnan(y[i]) == bad);
      CHECK(d[i] == (bad || i == 5 ? 2.0f : 0.0f));
      if (!bad && i != 5) CHECK(y[i] == 0.0f);
    }
  });
}

TEST_CASE("bf16 is by oneDNN where that multiplies it, and emulated where it does not") {
  CompileOptions options{.precision = Precision::bf16};
  const bool onednn = why_no_onednn().empty();
  CHECK(choose_arithmetic(options).products == (onednn ? Products::bf16 : Products::bf16_emulated));
  CHECK(why_slow(options).empty() == (onednn && onednn_has_amx()));
  if (onednn && !onednn_has_amx()) CHECK(why_slow(options) == "by oneDNN without AMX");
  if (!onednn) CHECK_THAT(why_slow(options), Catch::EndsWith(why_no_onednn()));
  for (const std::string& convolution : kConvolutions) {
    options.convolution = convolution;
    CHECK(choose_arithmetic(options).products == Products::bf16_emulated);
    CHECK_THAT(why_slow(options), Catch::Contains("emulated in fp32") &&
                                      Catch::Contains("--convolution=" + convolution));
  }
  options.precision = Precision::fp32;
  CHECK(why_slow(options).empty());
}

// Gradients of one batch, in one of the two ways.
std::vector<float> gradients(const Net& net, const std::string& convolution, Precision precision) {
  const std::unique_ptr<Backend> backend = make_backend({2, 1, "auto"});
  const std::unique_ptr<Towers> towers = compile(*backend, net, 1, 9, convolution, precision);
  const Batches batches(net, 1, 9);
  towers->compute_gradients(batches.get(), false);
  towers->average_gradients();
  std::vector<float> flat(VariableLayout(net).size());
  towers->read_gradients(flat);
  return flat;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

TEST_CASE("both ways to multiply bf16 round the same operands and sum in ways of their own") {
  if (!why_no_onednn().empty()) return towers::test::skip("no bf16 by oneDNN: " + why_no_onednn());
  const Net net = small_cifar10_net();
  const std::vector<float> exact = gradients(net, "direct", Precision::fp32);
  const std::vector<float> emulated = gradients(net, "direct", Precision::bf16);
  const std::vector<float> onednn = gradients(net, "auto", Precision::bf16);
  CHECK(onednn != emulated);
  const double rounding = distance(emulated, exact);
  CAPTURE(rounding, distance(onednn, emulated));
  CHECK(rounding > 1e-3);  // of what is rounded to 8 bits
  CHECK(distance(onednn, emulated) < rounding / 3);
}

TEST_CASE("weights decay by what they are, not by what bf16 rounds them to") {
  Net net = small_cifar10_net(), decayed = net;
  for (Layer& layer : net.layers) layer.parameters.weight_decay = 0;
  for (Layer& layer : decayed.layers) layer.parameters.weight_decay = 1;
  const VariableLayout layout(decayed);
  for (const char* convolution : {"auto", "direct"}) {
    CAPTURE(convolution);
    const std::vector<float> plain = gradients(net, convolution, Precision::bf16);
    const std::vector<float> all = gradients(decayed, convolution, Precision::bf16);
    const std::unique_ptr<Backend> backend = make_backend({2, 1, "auto"});
    std::vector<float> values(layout.size());
    compile(*backend, net, 1, 9, convolution, Precision::bf16)->read_variables(values);
    std::vector<float> decay, wanted;
    for (const Variable& v : layout.variables())
      for (std::size_t i = v.offset; i < v.offset + v.size; ++i) {
        decay.push_back(all[i] - plain[i]);
        wanted.push_back(static_cast<float>(v.weight_decay) * values[i]);
      }
    CHECK(distance(decay, wanted) < 1e-5);  // rounding would be 1e-3
  }
}

}  // namespace
}  // namespace towers::cpu::test
