#include "core/schedule.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support.h"

namespace towers {
namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// As the update pass of every backend has it.
float averaged(float average, float value, float decay) {
  return average - (1.0f - decay) * (average - value);
}

}  // namespace

TEST_CASE("The learning rate drops in TensorFlow's steps, bit for bit") {
  const auto golden =
      read_json(std::filesystem::path(TOWERS_SOURCE_DIR) / "tests/golden/schedule.json");
  for (const auto& run : golden["learning_rate"]) {
    Schedule schedule;
    schedule.decay_steps = decay_steps(50000, run["batch_size"], 350);
    CHECK(schedule.decay_steps == run["decay_steps"]);
    for (std::size_t i = 0; i < run["steps"].size(); ++i) {
      INFO("batch " << run["batch_size"] << ", step " << run["steps"][i]);
      CHECK(bits(learning_rate(schedule, run["steps"][i])) == bits(run["rates"][i].get<float>()));
    }
  }
}

TEST_CASE("The moving average follows TensorFlow's, bit for bit") {
  const auto golden =
      read_json(std::filesystem::path(TOWERS_SOURCE_DIR) / "tests/golden/schedule.json");
  for (const auto& row : golden["moving_average"]) {
    INFO("step " << row["step"]);
    CHECK(bits(averaged(row["before"].get<float>(), row["value"].get<float>(),
                        moving_average_decay(Schedule{}, row["step"]))) ==
          bits(row["after"].get<float>()));
  }
}

TEST_CASE("Rates and averages of the original trainer, bit for bit") {
  if (test::shared_dir().empty()) return test::skip("the shared golden values are not here");
  const auto golden = read_json(test::shared_dir() / "golden" / "lr_ema.json");
  Schedule schedule;
  schedule.decay_steps = decay_steps(50000, golden["learning_rate"]["batch_size"], 350);
  CHECK(schedule.decay_steps == golden["learning_rate"]["decay_steps"]);
  for (const auto& row : golden["learning_rate"]["values"]) {
    INFO("step " << row["step"]);
    CHECK(bits(learning_rate(schedule, row["step"])) ==
          std::strtoul(row["hex"].get<std::string>().c_str(), nullptr, 16));
  }
  float average = golden["ema"]["initial_average"];
  for (const auto& row : golden["ema"]["rows"]) {
    INFO("update " << row["num_updates"]);
    const float decay = moving_average_decay(schedule, row["num_updates"]);
    CHECK(bits(decay) == bits(row["decay"].get<float>()));
    average = averaged(average, row["value"].get<float>(), decay);
    CHECK(bits(average) == bits(row["average"].get<float>()));
  }
}

TEST_CASE("Decay steps are cut to a whole number, as the tutorial's int() does") {
  CHECK(decay_steps(50000, 128, 350) == 136718);     // 136718.75
  CHECK(decay_steps(50000, 4 * 128, 350) == 34179);  // 34179.69: counting four towers
  CHECK(decay_steps(50000, 128, 0.5) == 195);
  CHECK(decay_steps(50000, 1000000, 1) == 1);  // never 0: the rate divides by it
}

TEST_CASE("Other rates and decays") {
  const Schedule schedule{.learning_rate = 0.5f,
                          .learning_rate_decay = 0.25f,
                          .decay_steps = 10,
                          .moving_average_decay = 0.9f};
  CHECK(learning_rate(schedule, 0) == 0.5f);
  CHECK(learning_rate(schedule, 9) == 0.5f);
  CHECK(learning_rate(schedule, 10) == 0.125f);
  CHECK(learning_rate(schedule, 39) == 0.5f / 64);
  CHECK(moving_average_decay(schedule, 1) == 2.0f / 11.0f);
  CHECK(moving_average_decay(schedule, 79) == Approx(80.0 / 89.0));
  CHECK(moving_average_decay(schedule, 80) == 0.9f);
  CHECK(moving_average_decay(schedule, 1000000) == 0.9f);
}

}  // namespace towers
