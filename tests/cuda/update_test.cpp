// Gradients added and the update on the device: against the definition, the CPU's update, and what
// both say of values that are not finite.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "core/schedule.h"
#include "cpu/simd.h"
#include "cpu/update.h"
#include "cuda/kernels.h"
#include "tests/cuda/device.h"
#include "tests/reference/compare.h"
#include "tests/reference/net.h"

namespace towers::cuda::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kDecay = 0.004f;

struct Part {  // of the flat buffer: a variable
  std::size_t offset, size;
  float decay;
};

// Variables of one value, of less than four, of a whole piece, of a piece and one value, of
// several.
const std::vector<Part>& parts() {
  static const std::vector<Part> all{
      {0, 1, 0}, {16, 10, 0}, {32, 4096, kDecay}, {4128, 4097, 0}, {8240, 9003, kDecay}};
  return all;
}
constexpr std::size_t kSize = 17248;

std::vector<Piece> pieces_of() {
  std::vector<Piece> pieces;
  for (std::size_t v = 0; v < parts().size(); ++v)
    for (std::size_t at = 0; at < parts()[v].size; at += kPieceSize)
      pieces.push_back(
          {static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(parts()[v].offset + at),
           static_cast<std::uint32_t>(std::min<std::size_t>(kPieceSize, parts()[v].size - at)),
           parts()[v].decay});
  return pieces;
}

// Zero between the variables.
std::vector<float> flat(std::uint32_t stream) {
  const std::vector<float> values = values_of(kSize, stream);
  std::vector<float> buffer(kSize, 0.0f);
  for (const Part& part : parts())
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(part.offset), part.size,
                buffer.begin() + static_cast<std::ptrdiff_t>(part.offset));
  return buffer;
}

struct Buffers {
  std::vector<float> gradient = flat(1), variables = flat(2), averages = flat(3);
  std::vector<float> cross_entropies{1, 2, 3};
  std::vector<float> mean = std::vector<float>(kSize, -7), squares;
  std::uint64_t trouble = kNoTrouble;
  std::optional<std::vector<float>> own;  // another buffer than the gradient
};

// Step 5 of the second of two ranks, with towers 1, 3 and 5.
UpdateArguments<float> step_of(std::int64_t step = 5) {
  UpdateArguments<float> a;
  a.step = step;
  a.gradient_scale = 0.25f;
  a.tower_count = 3;
  a.first_tower = 1;
  a.tower_stride = 2;
  a.learning_rate = 0.1f;
  a.average_weight = 0.2f;
  return a;
}

enum class Own { none, same, other };

Buffers run(Buffers b, UpdateArguments<float> a, Own own = Own::none) {
  TestDevice device;
  const std::vector<Piece> pieces = pieces_of();
  a.pieces = device.put(pieces);
  a.piece_count = static_cast<int>(pieces.size());
  const float* gradient = device.put(b.gradient);
  float* mean = device.put(b.mean);
  float* variables = device.put(b.variables);
  float* averages = device.put(b.averages);
  float* squares = device.put(std::vector<float>(pieces.size(), -7));
  std::uint64_t* trouble = device.put(std::vector<std::uint64_t>{b.trouble});
  a.gradient = gradient;
  a.cross_entropies = device.put(b.cross_entropies);
  a.mean = mean;
  a.variables = variables;
  a.averages = averages;
  a.squares = squares;
  a.trouble = trouble;
  if (own == Own::same) a.own_gradient = gradient;
  if (own == Own::other) a.own_gradient = device.put(b.own.value_or(flat(4)));
  a.own_tower = 3;
  update(device.stream(), a);
  b.mean = device.get(mean, kSize);
  b.variables = device.get(variables, kSize);
  b.averages = device.get(averages, kSize);
  b.squares = device.get(squares, pieces.size());
  b.trouble = device.get(trouble, 1)[0];
  return b;
}

void check_key(std::uint64_t key, Trouble trouble, int variable, int tower, std::int64_t step = 5) {
  const TroubleFields fields = trouble_fields(key);
  CHECK(fields.step == step);
  CHECK(static_cast<int>(fields.trouble) == static_cast<int>(trouble));
  CHECK(fields.variable == variable);
  CHECK(fields.tower == tower);
}

TEST_CASE("trouble's keys order by step, cause, variable and tower, and can be read back") {
  const std::int64_t last_step = (std::int64_t{1} << 36) - 2;
  const std::vector<std::uint64_t> ascending{trouble_key(0, Trouble::old_value, 0, 0),
                                             trouble_key(0, Trouble::old_value, 0, 4095),
                                             trouble_key(0, Trouble::old_value, 4095, 0),
                                             trouble_key(0, Trouble::tower_gradient, 0, 0),
                                             trouble_key(0, Trouble::gradient, 7, 0),
                                             trouble_key(0, Trouble::new_value, 0, 0),
                                             trouble_key(0, Trouble::average, 0, 0),
                                             trouble_key(0, Trouble::loss, 4095, 4095),
                                             trouble_key(1, Trouble::old_value, 0, 0),
                                             trouble_key(last_step, Trouble::loss, 9, 8),
                                             kNoTrouble};
  for (std::size_t i = 1; i < ascending.size(); ++i) CHECK(ascending[i - 1] < ascending[i]);
  check_key(trouble_key(last_step, Trouble::loss, 4095, 17), Trouble::loss, 4095, 17, last_step);
  CHECK_FALSE(is_stopped(kNoTrouble, last_step));
  CHECK_FALSE(is_stopped(trouble_key(5, Trouble::loss, 0, 0), 5));
  CHECK(is_stopped(trouble_key(4, Trouble::loss, 4095, 4095), 5));
}

TEST_CASE("the update writes mean, variables, averages and sums of squares") {
  for (const Own own : {Own::none, Own::same, Own::other}) {
    const Buffers before;
    const Buffers after = run(before, step_of(), own);
    CHECK(after.trouble == kNoTrouble);
    std::vector<double> mean(kSize, -7.0), variables(kSize), averages(kSize);
    std::vector<double> squares;
    for (const Piece& piece : pieces_of()) {
      double sum = 0;
      for (std::size_t i = piece.begin; i < piece.begin + piece.size; ++i) {
        const double v = static_cast<double>(before.variables[i]);
        mean[i] = static_cast<double>(before.gradient[i]) * 0.25 +
                  static_cast<double>(piece.weight_decay) * v;
        variables[i] = v - double{0.1f} * mean[i];
        const double a = static_cast<double>(before.averages[i]);
        averages[i] = a - double{0.2f} * (a - variables[i]);
        sum += v * v;
      }
      squares.push_back(sum);
    }
    CHECK(reference::relative_error(after.mean, mean) < 1e-7);  // -7: the gaps are not written
    CHECK(reference::relative_error(after.variables, variables) < 1e-7);
    CHECK(reference::relative_error(after.averages, averages) < 1e-7);
    CHECK(reference::relative_error(after.squares, squares) < 1e-6);
  }
}

TEST_CASE("many updates by the schedule stay with the reference and with the CPU's") {
  const Schedule schedule{.learning_rate = 0.5f, .decay_steps = 4};
  Buffers device;
  std::vector<float> cpu_variables = device.variables, cpu_averages = device.averages;
  std::vector<double> variables = reference::doubles(device.variables);
  std::vector<double> averages = reference::doubles(device.averages);
  const cpu::UpdateKernels cpu = cpu::update_kernels(cpu::find_target("auto"));
  for (std::int64_t step = 0; step < 10; ++step) {
    device.gradient = flat(static_cast<std::uint32_t>(100 + step));
    UpdateArguments<float> a = step_of(step);
    a.gradient_scale = 1;
    a.learning_rate = learning_rate(schedule, step);
    const float decay = moving_average_decay(schedule, step + 1);
    a.average_weight = 1.0f - decay;
    device = run(device, a);
    // The mean has the weight decay, as the gradients that those two take.
    reference::apply_gradients(reference::doubles(device.mean),
                               static_cast<double>(a.learning_rate), static_cast<double>(decay),
                               variables, averages);
    cpu.update(kSize, a.learning_rate, 1.0f - decay, device.mean.data(), cpu_variables.data(),
               cpu_averages.data());
  }
  CHECK(device.trouble == kNoTrouble);
  const auto compare = [](const std::vector<float>& got, const auto& want, double tolerance) {
    for (const Part& part : parts()) {
      double difference = 0, norm = 0;
      for (std::size_t i = part.offset; i < part.offset + part.size; ++i) {
        const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
        difference += (g - w) * (g - w);
        norm += w * w;
      }
      CHECK(difference <= tolerance * tolerance * norm);
    }
  };
  compare(device.variables, variables, 1e-6);
  compare(device.averages, averages, 1e-6);
  compare(device.variables, cpu_variables, 1e-6);
  compare(device.averages, cpu_averages, 1e-6);
}

// Places in the buffer: a single value, the rests of a piece, first and last of whole ones.
const std::vector<std::pair<std::size_t, int>>& places() {
  static const std::vector<std::pair<std::size_t, int>> all{
      {0, 0}, {24, 1}, {25, 1}, {32, 2}, {4127, 2}, {8224, 3}, {8240 + 5000, 4}, {8240 + 9002, 4}};
  return all;
}

TEST_CASE("the update tells what is not finite, wherever it lies") {
  for (const float poison : {kNaN, kInfinity, -kInfinity})
    for (const auto& [at, variable] : places()) {
      CAPTURE(poison, at);
      Buffers b;
      b.variables[at] = poison;
      check_key(run(b, step_of(), Own::same).trouble, Trouble::old_value, variable, 0);
      b = {};
      b.averages[at] = poison;
      check_key(run(b, step_of()).trouble, Trouble::average, variable, 0);
      b = {};
      b.gradient[at] = poison;
      check_key(run(b, step_of(), Own::none).trouble, Trouble::gradient, variable, 0);
      check_key(run(b, step_of(), Own::same).trouble, Trouble::tower_gradient, variable, 3);
      check_key(run(b, step_of(), Own::other).trouble, Trouble::gradient, variable, 0);
      b = {};
      b.own = flat(4);
      (*b.own)[at] = poison;
      check_key(run(b, step_of(), Own::other).trouble, Trouble::tower_gradient, variable, 3);
    }
}

TEST_CASE("the update tells what it made too large itself") {
  Buffers b;
  b.variables[20] = 3e38f;
  b.gradient[20] = -3e38f;
  UpdateArguments<float> a = step_of();
  a.gradient_scale = 1;
  a.learning_rate = 1;
  check_key(run(b, a, Own::same).trouble, Trouble::new_value, 1, 0);
}

TEST_CASE("of several troubles the first cause is kept, and the first variable") {
  Buffers b;
  b.cross_entropies[1] = kNaN;
  b.gradient[8240] = kNaN;
  check_key(run(b, step_of(), Own::same).trouble, Trouble::tower_gradient, 4, 3);
  b.gradient[4128] = kInfinity;
  check_key(run(b, step_of(), Own::same).trouble, Trouble::tower_gradient, 3, 3);
  b.variables[8250] = kInfinity;
  check_key(run(b, step_of(), Own::same).trouble, Trouble::old_value, 4, 0);
}

TEST_CASE("a loss that is not finite is told with its tower") {
  for (std::size_t t = 0; t < 3; ++t) {
    Buffers b;
    b.cross_entropies[t] = t == 1 ? kInfinity : kNaN;
    check_key(run(b, step_of()).trouble, Trouble::loss, 0, 1 + 2 * static_cast<int>(t));
  }
  // Weights whose squares overflow make the total loss infinite; others are in no loss.
  Buffers b;
  b.variables[40] = 1e30f;
  check_key(run(b, step_of()).trouble, Trouble::loss, 0, 1);
  b = {};
  b.variables[4130] = 1e30f;
  CHECK(run(b, step_of()).trouble == kNoTrouble);
}

TEST_CASE("after a step that went wrong nothing is written, in that step all is") {
  Buffers b;
  b.gradient[50] = kNaN;
  b.cross_entropies[0] = kNaN;
  const Buffers untouched = b;
  b.trouble = trouble_key(4, Trouble::loss, 0, 2);
  const Buffers later = run(b, step_of(5), Own::same);
  CHECK(later.trouble == b.trouble);
  CHECK(same_bits(later.variables, untouched.variables));
  CHECK(same_bits(later.averages, untouched.averages));
  CHECK(same_bits(later.mean, untouched.mean));
  CHECK(later.squares == std::vector<float>(later.squares.size(), -7));

  b.trouble = trouble_key(5, Trouble::tower_gradient, 1, 0);  // as accumulate_gradients leaves it
  const Buffers same_step = run(b, step_of(5));
  CHECK(same_step.trouble == b.trouble);
  CHECK(same_step.variables[16] != untouched.variables[16]);
}

TEST_CASE("the largest finite values pass") {
  Buffers b;
  b.gradient.assign(kSize, std::numeric_limits<float>::denorm_min());
  b.variables[16] = b.averages[16] = std::numeric_limits<float>::max();
  b.cross_entropies.assign(3, std::numeric_limits<float>::max());
  CHECK(run(b, step_of(), Own::same).trouble == kNoTrouble);
}

TEST_CASE("tower gradients are added in order, and the tower that is not finite is named") {
  TestDevice device;
  const std::vector<Piece> pieces = pieces_of();
  const Piece* put_pieces = device.put(pieces);
  const int count = static_cast<int>(pieces.size());
  std::vector<float> want;
  float* sum = device.put(std::vector<float>(kSize, -7));
  std::uint64_t* trouble = device.put(std::vector<std::uint64_t>{kNoTrouble});
  for (const std::uint32_t tower : {0u, 1u, 2u}) {
    const std::vector<float> gradient = flat(10 + tower);
    accumulate_gradients(device.stream(), put_pieces, count, tower == 0, 5, static_cast<int>(tower),
                         device.put(gradient), sum, nullptr, trouble);
    if (tower == 0)
      want = gradient;
    else
      for (std::size_t i = 0; i < kSize; ++i) want[i] += gradient[i];
  }
  const std::vector<float> got = device.get(sum, kSize);
  for (const Part& part : parts())
    for (std::size_t i = part.offset; i < part.offset + part.size; ++i) REQUIRE(got[i] == want[i]);
  CHECK(got[1] == -7);  // between the variables
  CHECK(device.get(trouble, 1)[0] == kNoTrouble);

  for (const auto& [at, variable] : places())
    for (const bool first : {true, false}) {
      std::vector<float> gradient = flat(10);
      gradient[at] = first ? kNaN : -kInfinity;
      std::uint64_t* found = device.put(std::vector<std::uint64_t>{kNoTrouble});
      accumulate_gradients(device.stream(), put_pieces, count, first, 6, 9, device.put(gradient),
                           sum, nullptr, found);
      CAPTURE(at, first);
      check_key(device.get(found, 1)[0], Trouble::tower_gradient, variable, 9, 6);
    }
}

}  // namespace
}  // namespace towers::cuda::test
