// The table of a run's numbers.
#include "data/metrics_log.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/data/output_support.h"
#include "tests/support.h"

using namespace towers;
using namespace towers::data;
using namespace towers::test;

namespace {

MetricsRow row(std::int64_t step) {
  return {step, 1764590000.25, 4.5, 4.25, 0.1, 1234.567, 0.0625, 0.5};
}

// What lies in the file after each of `steps` was added from `first_step` on.
std::string logged(const std::filesystem::path& path, std::int64_t first_step,
                   const std::vector<std::int64_t>& steps) {
  MetricsLog log(path);
  log.begin(first_step);
  for (std::int64_t step : steps) log.add(row(step));
  return read_file(path);
}

}  // namespace

TEST_CASE("the columns of CSV are these, in this order") {
  TemporaryFolder folder;
  CHECK(logged(folder.path() / "a.csv", 0, {0}) ==
        "step,time,loss,cross_entropy,learning_rate,examples_per_sec,sec_per_batch,epoch\n"
        "0,1764590000.250000,4.5,4.25,0.1,1234.57,0.0625,0.5\n");
}

TEST_CASE("JSON lines have the same names") {
  TemporaryFolder folder;
  for (const char* name : {"a.jsonl", "a.json"}) {
    const auto json = nlohmann::ordered_json::parse(logged(folder.path() / name, 0, {7}));
    std::string names;
    for (const auto& [key, value] : json.items()) names += key + ",";
    CHECK(names ==
          "step,time,loss,cross_entropy,learning_rate,examples_per_sec,sec_per_batch,epoch,");
    CHECK(json["step"] == 7);
    CHECK(json["time"] == 1764590000.25);
  }
}

TEST_CASE("a resumed run keeps the rows before its first step, a new one none") {
  TemporaryFolder folder;
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const auto path = folder.path() / name;
    const std::string two = logged(path, 0, {0, 10});
    CHECK(logged(path, 0, {0, 10}) == two);
    const std::string three = logged(path, 11, {20});
    CHECK(three.starts_with(two));
    // Killed behind the checkpoint, in the middle of a row: step 20 is made again.
    write_file(path, three + "30,17");
    CHECK(logged(path, 20, {20}) == three);
  }
}

TEST_CASE("somebody else's file, and a name that tells no format, are refused") {
  TemporaryFolder folder;
  const auto path = folder.path() / "notes.csv";
  write_file(path, "my,own,notes\n");
  CHECK(contains(error_of([&] { MetricsLog log(path); }), path.string()));
  CHECK(read_file(path) == "my,own,notes\n");
  CHECK_THROWS_AS(MetricsLog(folder.path() / "a.txt"), UsageError);
  CHECK_THROWS_AS(MetricsLog(folder.path() / "csv"), UsageError);
  write_file(folder.path() / "empty.csv", "");
  CHECK(error_of([&] { MetricsLog log(folder.path() / "empty.csv"); }).empty());
}
