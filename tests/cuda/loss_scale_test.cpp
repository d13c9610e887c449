// Loss scaling: the scale's way from step to step, what an overflow leaves alone, and that nothing
// of the scale is left in what the update writes.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"

namespace towers::cuda::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("the scale is halved by an overflow and doubled by 2000 good steps") {
  LossScale scale;
  CHECK(scale.scale == 32768);
  for (int s = 0; s < 1999; ++s) scale = next_loss_scale(scale);
  CHECK(scale.scale == 32768);
  CHECK(scale.good_steps == 1999);
  CHECK(next_loss_scale(scale).scale == 65536);
  CHECK(next_loss_scale(scale).good_steps == 0);

  scale.overflow = 1;  // one step before: all is to be done again
  CHECK(scale.skips_step());
  scale = next_loss_scale(scale);
  CHECK(scale.scale == 16384);
  CHECK(scale.good_steps == 0);
  CHECK(scale.overflow == 0);
  CHECK_FALSE(scale.skips_step());
}

TEST_CASE("the scale does not leave the range where it can be divided by") {
  LossScale scale{.scale = 2, .good_steps = 5, .overflow = 1};
  CHECK(scale.skips_step());
  scale = next_loss_scale(scale);
  CHECK(scale.scale == 1);
  scale.overflow = 1;
  CHECK_FALSE(scale.skips_step());  // the fault of the gradient, which is to be reported
  CHECK(next_loss_scale(scale).scale == 1);

  LossScale large{.scale = kLargestLossScale, .good_steps = kStepsToGrow - 1};
  large = next_loss_scale(large);
  CHECK(large.scale == kLargestLossScale);
  CHECK(large.good_steps == 0);
  CHECK(std::isnormal(1 / large.scale));
}

TEST_CASE("the loss's gradient is multiplied by the scale, the loss is not") {
  TestDevice device;
  const std::vector<float> logits = values_of(40, 1, 3);
  const std::vector<std::int32_t> labels{1, 0, 3, 2};
  float* d = device.room<float>(40);
  float* losses = device.room<float>(5);
  const auto run = [&](const LossScale* scale) {
    softmax_loss(device.stream(), 4, 10, device.put(logits), device.put(labels), scale, d, losses,
                 losses + 4);
  };
  run(nullptr);
  std::vector<float> want = device.get(d, 40);
  const std::vector<float> plain_losses = device.get(losses, 5);
  run(device.put(std::vector<LossScale>{{.scale = 1024}}));
  for (float& value : want) value *= 1024;
  CHECK(same_bits(device.get(d, 40), want));
  CHECK(same_bits(device.get(losses, 5), plain_losses));
}

// Two variables of 5 and of 4100 values, the second with decay, in three pieces.
constexpr std::size_t kSize = 16 + 4112;
const std::vector<Piece> kPieces{{0, 0, 5, 0}, {1, 16, 4096, 0.5f}, {1, 4112, 4, 0.5f}};

std::vector<float> flat(std::uint32_t stream) {
  std::vector<float> values = values_of(kSize, stream);
  std::fill(values.begin() + 5, values.begin() + 16, 0.0f);
  std::fill(values.begin() + 4116, values.end(), 0.0f);
  return values;
}

struct State {
  std::vector<float> gradient = flat(1), variables = flat(2), averages = flat(3);
  std::vector<float> mean = std::vector<float>(kSize, -7), squares;
  std::vector<float> working = std::vector<float>(kSize, -7);
  std::uint64_t trouble = kNoTrouble;
  float cross_entropy = 1;
  LossScale scale;
};

template <class T>
State run(State s) {
  TestDevice device;
  UpdateArguments<T> a;
  a.pieces = device.put(kPieces);
  a.piece_count = static_cast<int>(kPieces.size());
  a.step = 5;
  a.gradient_scale = 0.25f;
  float* gradient = device.put(s.gradient);
  LossScale* scale = device.put(std::vector<LossScale>{s.scale});
  a.gradient = a.own_gradient = gradient;
  a.own_tower = 2;
  if (kScaled<T>) a.loss_scale = scale;
  a.cross_entropies = device.put(std::vector<float>{s.cross_entropy});
  a.tower_count = 1;
  a.learning_rate = 0.1f;
  a.average_weight = 0.2f;
  float* mean = device.put(s.mean);
  float* variables = device.put(s.variables);
  float* averages = device.put(s.averages);
  float* squares = device.room<float>(kPieces.size());
  std::vector<T> working;
  for (const float value : s.working) working.push_back(narrow<T>(value));
  T* put_working = device.put(working);
  std::uint64_t* trouble = device.put(std::vector<std::uint64_t>{s.trouble});
  a.mean = mean;
  a.variables = variables;
  a.averages = averages;
  a.squares = squares;
  a.working = put_working;
  a.trouble = trouble;
  update(device.stream(), a);
  s.mean = device.get(mean, kSize);
  s.variables = device.get(variables, kSize);
  s.averages = device.get(averages, kSize);
  s.squares = device.get(squares, kPieces.size());
  s.trouble = device.get(trouble, 1)[0];
  s.scale = device.get(scale, 1)[0];
  working = device.get(put_working, kSize);
  for (std::size_t i = 0; i < kSize; ++i) s.working[i] = widen(working[i]);
  return s;
}

template <class T>
void check_working(const State& s) {
  for (const Piece& piece : kPieces)
    for (std::size_t i = piece.begin; i < piece.begin + piece.size; ++i)
      REQUIRE(s.working[i] == widen(narrow<T>(s.variables[i])));
  CHECK(s.working[7] == -7);  // between the variables
}

TEST_CASE("the update writes the working copy, and all else as without one") {
  const State want = run<float>({});
  const State got = run<__nv_bfloat16>({});
  CHECK(same_bits(got.variables, want.variables));
  CHECK(same_bits(got.averages, want.averages));
  CHECK(same_bits(got.mean, want.mean));
  CHECK(same_bits(got.squares, want.squares));
  check_working<__nv_bfloat16>(got);
}

TEST_CASE("nothing of the scale is left in the update") {
  const State want = run<float>({});
  State scaled;
  for (float& value : scaled.gradient) value *= 32768;
  const State got = run<__half>(scaled);
  CHECK(same_bits(got.variables, want.variables));
  CHECK(same_bits(got.averages, want.averages));
  CHECK(same_bits(got.mean, want.mean));
  check_working<__half>(got);
  CHECK(got.scale.scale == 32768);
  CHECK(got.scale.good_steps == 1);
  CHECK(got.trouble == kNoTrouble);
}

TEST_CASE("an overflow changes no variable, tells its mean gradient, and is no trouble") {
  for (const float poison : {kInfinity, -kInfinity, std::nanf("")})
    for (const std::size_t at : {0u, 4u, 16u, 4111u, 4115u}) {
      CAPTURE(poison, at);
      State before;
      before.gradient[at] = poison;
      before.scale.good_steps = 77;
      const State after = run<__half>(before);
      CHECK(same_bits(after.variables, before.variables));
      CHECK(same_bits(after.averages, before.averages));
      CHECK(same_bits(after.working, before.working));
      // The mean is this step's, not the one before's.
      State finite = before;
      finite.gradient[at] = 0;
      std::vector<float> mean = run<__half>(finite).mean;
      CHECK_FALSE(std::isfinite(after.mean[at]));
      mean[at] = after.mean[at];
      CHECK(same_bits(after.mean, mean));
      CHECK(same_bits(after.squares, run<__half>({}).squares));  // the loss is told all the same
      CHECK(after.trouble == kNoTrouble);
      CHECK(after.scale.scale == 16384);
      CHECK(after.scale.good_steps == 0);
      CHECK(after.scale.overflow == 0);
    }
}

TEST_CASE("an overflow hides neither a loss nor a variable that is not finite") {
  State s;
  s.gradient[20] = kInfinity;
  s.cross_entropy = kInfinity;
  CHECK(trouble_fields(run<__half>(s).trouble).trouble == Trouble::loss);
  s.variables[30] = std::nanf("");
  CHECK(trouble_fields(run<__half>(s).trouble).trouble == Trouble::old_value);
  CHECK(trouble_fields(run<__half>(s).trouble).variable == 1);
}

TEST_CASE("at the least scale a gradient that is not finite is named, as without a scale") {
  State s;
  s.gradient[20] = kInfinity;
  s.scale.scale = kLeastLossScale;
  const TroubleFields scaled = trouble_fields(run<__half>(s).trouble);
  CHECK(scaled.trouble == Trouble::tower_gradient);
  CHECK(scaled.variable == 1);
  CHECK(scaled.tower == 2);
  CHECK(run<__nv_bfloat16>(s).trouble == run<__half>(s).trouble);
}

TEST_CASE("a tower's overflow is recorded where no scale is to blame alone") {
  TestDevice device;
  std::vector<float> gradient = flat(1);
  gradient[4000] = kInfinity;
  const auto trouble_with = [&](const LossScale* scale) {
    std::uint64_t* trouble = device.put(std::vector<std::uint64_t>{kNoTrouble});
    accumulate_gradients(device.stream(), device.put(kPieces), 3, true, 6, 9, device.put(gradient),
                         device.room<float>(kSize), scale, trouble);
    return device.get(trouble, 1)[0];
  };
  CHECK(trouble_with(nullptr) == trouble_key(6, Trouble::tower_gradient, 1, 9));
  CHECK(trouble_with(device.put(std::vector<LossScale>{{.scale = 2}})) == kNoTrouble);
  CHECK(trouble_with(device.put(std::vector<LossScale>{{.scale = 1}})) == trouble_with(nullptr));
}

}  // namespace
}  // namespace towers::cuda::test
