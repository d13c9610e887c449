// Training batches that the towers distort themselves make the run that the host's images make.

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "core/distortion.h"
#include "core/error.h"
#include "core/philox.h"
#include "data/dataset.h"
#include "data/pipeline.h"
#include "tests/backend/problem.h"
#include "tests/reference/compare.h"

namespace towers::test {
namespace {

using reference::doubles;

constexpr int kBatch = 4, kTowers = 3, kSteps = 6;
constexpr std::uint64_t kSeed = 7;

// So few that the steps reach across three epochs, and a batch into two.
data::Dataset noise_set(std::size_t size = 21) {
  data::Dataset set{"noise", std::vector<std::uint8_t>(size * data::kRecordBytes)};
  for (std::size_t i = 0; i < set.records.size(); ++i)
    set.records[i] = static_cast<std::uint8_t>(philox(1, Stream{99}, i).word[0]);
  for (std::size_t i = 0; i < size; ++i)
    set.records[i * data::kRecordBytes] = static_cast<std::uint8_t>(i % 3);
  return set;
}

Net image_net() {
  return small_net({kCropSide, kCropSide, 3},
                   {{"conv", Convolution{.kernel = 5, .stride = 4, .outputs = 4}}});
}

struct State {
  std::vector<float> variables, averages, losses;
};

// `steps` steps from `first_step` of one stream, from the variables of `state`.
State run(const BackendUnderTest& row, Backend& backend, const Problem& problem, InputForm form,
          const State& state, int first_step, int steps) {
  BackendUnderTest exact = row;
  exact.options.deterministic = true;
  const std::unique_ptr<Towers> towers = compile(exact, backend, problem, kBatch, kTowers);
  towers->write_variables(state.variables, state.averages);
  const data::Dataset set = noise_set();
  if (form != InputForm::images) REQUIRE(towers->make_input(form, {set.records, kSeed}));
  data::Pipeline pipeline(
      set,
      {.batch_size = kBatch,
       .capacity = 2 * kTowers,
       .threads = 1,
       .seed = kSeed,
       .first_position = static_cast<std::uint64_t>(first_step * kTowers * kBatch),
       .form = form},
      [&](std::size_t bytes) { return backend.allocate(bytes); });
  State end;
  for (int step = 0; step < steps; ++step) {
    std::vector<Batch> batches;
    for (int t = 0; t < kTowers; ++t) batches.push_back(pipeline.next());
    run_step(*towers, batches);
    for (int t = 0; t < kTowers; ++t) pipeline.release();
    for (const Losses& losses : towers->report().towers) end.losses.push_back(losses.total);
  }
  end.variables = variables_of(*towers, problem);
  end.averages = averages_of(*towers, problem);
  return end;
}

void for_each_maker(const std::function<void(const BackendUnderTest& row, Backend& backend)>& f) {
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    if (backend.makes_input()) f(row, backend);
  });
}

TEST_CASE("records and positions make the run that the host's images make") {
  const Problem problem = draw_problem(image_net(), 1);
  const State start{problem.variables, problem.averages, {}};
  for_each_maker([&](const BackendUnderTest& row, Backend& backend) {
    const State images = run(row, backend, problem, InputForm::images, start, 0, kSteps);
    const State records = run(row, backend, problem, InputForm::records, start, 0, kSteps);
    const State held = run(row, backend, problem, InputForm::positions, start, 0, kSteps);
    CHECK(reference::relative_error(records.losses, doubles(images.losses)) <= row.tolerance);
    check_flat(problem, "value", records.variables, doubles(images.variables), row.tolerance);
    check_flat(problem, "average", records.averages, doubles(images.averages), row.tolerance);
    CHECK(held.losses == records.losses);
    CHECK(held.variables == records.variables);
    CHECK(held.averages == records.averages);
  });
}

TEST_CASE("a run whose towers make their input goes on bit for bit") {
  const Problem problem = draw_problem(image_net(), 1);
  const State start{problem.variables, problem.averages, {}};
  for_each_maker([&](const BackendUnderTest& row, Backend& backend) {
    const State whole = run(row, backend, problem, InputForm::positions, start, 0, kSteps);
    const State half = run(row, backend, problem, InputForm::positions, start, 0, 2);
    const State rest = run(row, backend, problem, InputForm::positions, half, 2, kSteps - 2);
    CHECK(rest.variables == whole.variables);
    CHECK(rest.averages == whole.averages);
  });
}

TEST_CASE("towers take input in the form that they were told, of images that they know") {
  const Problem problem = draw_problem(image_net(), 1);
  const Problem other = draw_problem(small_net({6, 6, 3}, {}), 1);
  data::Dataset set = noise_set();
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, kBatch);
    if (!backend.makes_input()) {
      CHECK_THROWS_AS(towers->make_input(InputForm::positions, {set.records, kSeed}),
                      std::logic_error);
      return;
    }
    const Batch held{.size = kBatch, .position = 0};
    CHECK_THROWS_AS(towers->compute_gradients({&held, 1}, false), std::invalid_argument);
    CHECK(towers->make_input(InputForm::records, {set.records, kSeed}));
    CHECK_THROWS_AS(towers->compute_gradients({&held, 1}, false), std::invalid_argument);

    const std::unique_ptr<Towers> small = compile(row, backend, other, kBatch);
    CHECK_THROWS_WITH(small->make_input(InputForm::positions, {set.records, kSeed}),
                      Catch::Contains("24 x 24 x 3") && Catch::Contains("--input=host"));
    set.records[5 * data::kRecordBytes] = 3;
    CHECK_THROWS_WITH(towers->make_input(InputForm::positions, {set.records, kSeed}),
                      Catch::Contains("label 3 of record 5 of the training set is not in 0..2"));
    set.records[5 * data::kRecordBytes] = 2;
  });
}

}  // namespace
}  // namespace towers::test
