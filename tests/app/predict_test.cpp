// `towers predict`, run as people run it.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

// Image `index` of the synthetic test set as a PPM file: what predict sees of it is the same.
void write_ppm(const fs::path& path, const towers::data::Dataset& set, std::size_t index) {
  std::string text = "P6 32 32 255\n";
  const std::uint8_t* planes = set.image(index);
  for (int i = 0; i < 1024; ++i)
    for (int c = 0; c < 3; ++c) text += static_cast<char>(planes[c * 1024 + i]);
  write_file(path, text);
}

ProcessResult predict(const fs::path& run, const std::vector<std::string>& more) {
  std::vector<std::string> args = {"predict", "--device=cpu", "--dataset=synthetic",
                                   "--data_dir=" + (run / "none").string(),
                                   "--checkpoint_dir=" + run.string()};
  args.insert(args.end(), more.begin(), more.end());
  return run_towers(args);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

}  // namespace

TEST_CASE("the table of a split agrees with eval, and a picture with its line") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 60, {"--batch_size=32"}).exit_code == 0);
  const ProcessResult table = predict(run, {"--csv=-", "--logits", "--batch_size=100"});
  INFO(table.err);
  REQUIRE(table.exit_code == 0);
  const std::vector<std::string> lines = lines_of(table.out);
  REQUIRE(lines.size() == 10001);
  CHECK(lines[0].starts_with("index,label,class,probability,logit_airplane,logit_automobile,"));
  int right = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    if (cells.size() != 14 || cells[0] != std::to_string(i - 1)) FAIL("line " + lines[i]);
    if (cells[1] == cells[2]) ++right;
  }
  const ProcessResult eval = run_towers({"eval", "--device=cpu", "--dataset=synthetic",
                                         "--run_once", "--checkpoint_dir=" + run.string(),
                                         "--eval_dir=" + (folder.path() / "eval").string()});
  CHECK(contains(eval.err, ": " + std::to_string(right) + " of 10000 right"));

  const auto set = towers::data::make_synthetic(towers::data::Split::test);
  const std::string file = (folder.path() / "one.ppm").string();
  write_ppm(file, set, 17);
  const ProcessResult one = predict(run, {file, "--json"});
  REQUIRE(one.exit_code == 0);
  const Json json = Json::parse(one.out);
  CHECK(json["global_step"] == 60);
  const Json& picture = json["pictures"][0];
  CHECK(picture["file"] == file);
  CHECK(picture["width"] == 32);
  REQUIRE(picture["predictions"].size() == 5);
  const std::vector<std::string> cells = cells_of(lines[18]);
  CHECK(picture["predictions"][0]["class"] == cells[2]);
  CHECK(picture["predictions"][0]["probability"].get<double>() ==
        Approx(std::stod(cells[3])).margin(1e-6));
  for (std::size_t i = 1; i < 5; ++i)
    CHECK(picture["predictions"][i - 1]["probability"] >= picture["predictions"][i]["probability"]);

  CHECK(predict(run, {"--csv=-", "--raw_weights"}).out != predict(run, {"--csv=-"}).out);
}

TEST_CASE("a picture that cannot be read costs its own line, not the others") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const auto set = towers::data::make_synthetic(towers::data::Split::test);
  const std::string good = (folder.path() / "good.png").string();  // the name does not matter
  const std::string bad = (folder.path() / "bad.jpg").string();
  write_ppm(good, set, 0);
  write_file(bad, "not a picture");
  const ProcessResult text = predict(run, {bad, good});
  CHECK(text.exit_code == 1);
  CHECK(lines_of(text.err).size() == 1);
  CHECK(contains(text.err, bad));
  CHECK(lines_of(text.out).size() == 6);
  CHECK(lines_of(text.out)[0] == good);
  const ProcessResult json = predict(run, {bad, good, "--json"});
  CHECK(json.exit_code == 1);
  const Json pictures = Json::parse(json.out)["pictures"];
  CHECK(contains(pictures[0]["error"].get<std::string>(), bad));
  CHECK(pictures[1]["predictions"].size() == 5);
  CHECK(predict(run, {bad}).exit_code == 1);
}

TEST_CASE("the classes' names are the data set's own where it has them") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", data = folder.path() / "data";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const std::string file = (folder.path() / "a.ppm").string();
  write_ppm(file, towers::data::make_synthetic(towers::data::Split::test), 0);
  fs::create_directories(data);
  write_file(data / "test_batch.bin", "");
  std::string names;
  for (int i = 0; i < 10; ++i) names += "kind " + std::to_string(i) + "\r\n";
  write_file(data / "batches.meta.txt", names + "\n");
  const auto result = [&] { return predict(run, {file, "--data_dir=" + data.string()}); };
  CHECK(contains(result().out, "\n  kind "));
  write_file(data / "batches.meta.txt", "one\ntwo\n");
  CHECK(result().exit_code == 1);
  CHECK(contains(result().err, "batches.meta.txt holds 2 names"));
}

TEST_CASE("predict asks for what it needs") {
  TemporaryFolder folder;
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {}, {"a.png", "--csv=-"}, {"--csv=-", "--json"}, {"a.png", "--logits"}}) {
    const ProcessResult result = predict(folder.path(), args);
    CHECK(result.exit_code == 2);
    CHECK(lines_of(result.err).size() == 1);
  }
  CHECK(contains(predict(folder.path(), {"a.png"}).err, "No checkpoint file found"));
}
