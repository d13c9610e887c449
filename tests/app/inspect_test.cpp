// `towers inspect`: checkpoints, their differences, safetensors, event files.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/app/quick_run.h"

using namespace towers::test;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

Json inspected(const std::vector<std::string>& paths, int exit_code = 0) {
  std::vector<std::string> args = {"inspect", "--json"};
  args.insert(args.end(), paths.begin(), paths.end());
  const ProcessResult result = run_towers(args);
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  return Json::parse(result.out);
}

fs::path event_file(const fs::path& dir) {
  for (const auto& entry : fs::directory_iterator(dir))
    if (contains(entry.path().filename().string(), "tfevents")) return entry.path();
  return {};
}

const Json& named(const Json& list, const char* key, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Json& row) { return row[key] == name; });
  REQUIRE(found != list.end());
  return *found;
}

}  // namespace

TEST_CASE("inspect tells the step, and which tensors are damaged") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  Json json = inspected({run.string()});
  CHECK(json["global_step"] == 1);
  CHECK(json["damaged"] == false);
  CHECK(json["tensors"].size() == 21);
  CHECK(json["bytes"] == 2 * 1068298 * 4 + 4);
  CHECK(contains(run_towers({"inspect", run.string()}).out, "global_step 1, all checksums right"));

  // Inside local3/weights, the largest by far.
  const fs::path data = run / "model.ckpt-0.data-00000-of-00001";
  std::string bytes = read_file(data);
  bytes[bytes.size() / 4] ^= 1;
  write_file(data, bytes);
  json = inspected({run.string()}, 1);
  CHECK(json["damaged"] == true);
  int damaged = 0;
  for (const Json& tensor : json["tensors"]) damaged += tensor.contains("error");
  CHECK(damaged == 1);
  const ProcessResult text = run_towers({"inspect", run.string()});
  CHECK(text.exit_code == 1);
  CHECK(contains(text.out, "not all checksums right"));
  CHECK(contains(text.err, data.string()));
}

TEST_CASE("the difference of two checkpoints") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 2, {"--checkpoint_every=1"}).exit_code == 0);
  const std::string first = (run / "model.ckpt-0").string(), second = run.string();
  Json json = inspected({"--diff", first, first});
  CHECK(json["equal"] == true);
  CHECK(json["tensors"] == 21);
  json = inspected({first, second, "--diff"});
  CHECK(json["equal"] == false);
  const Json& step = named(json["differences"], "name", "global_step");
  CHECK(step["largest"] == 1);
  CHECK(step["relative"] == 1);
  CHECK(named(json["differences"], "name", "conv1/weights")["norm"] > 0);
  CHECK(
      contains(run_towers({"inspect", "--diff", first, first}).out, "21 of 21 tensors are equal"));

  // A safetensors file stands for its checkpoint.
  const std::string file = (folder.path() / "a.safetensors").string();
  REQUIRE(run_towers({"export", "--checkpoint=" + first, "--output=" + file}).exit_code == 0);
  CHECK(inspected({"--diff", first, file})["equal"] == true);
  CHECK(inspected({file})["tensors"].size() == 21);

  CHECK(run_towers({"inspect", first, second}).exit_code == 2);
  CHECK(run_towers({"inspect", "--diff", first}).exit_code == 2);
  CHECK(run_towers({"inspect", "--diff", first, second, first}).exit_code == 2);
}

TEST_CASE("values that only differ as float32 are told too") {
  TemporaryFolder folder;
  const std::string a = (folder.path() / "a.safetensors").string(),
                    b = (folder.path() / "b.safetensors").string();
  const auto write = [](const std::string& path, std::int64_t step, double rate) {
    const std::string header = R"({"global_step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                               R"("rate":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}})";
    const std::uint64_t length = header.size();
    std::string bytes(24 + header.size(), '\0');
    std::memcpy(bytes.data(), &length, 8);
    std::memcpy(bytes.data() + 8, header.data(), header.size());
    std::memcpy(bytes.data() + 8 + header.size(), &step, 8);
    std::memcpy(bytes.data() + 16 + header.size(), &rate, 8);
    write_file(path, bytes);
  };
  write(a, 20000000, 1.0);
  write(b, 20000001, 1.0 + 1e-9);
  const Json json = inspected({"--diff", a, b});
  CHECK(json["equal"] == false);
  CHECK(named(json["differences"], "name", "global_step")["largest"] == 1);
  CHECK(named(json["differences"], "name", "rate")["largest"] == Approx(1e-9));
  CHECK(inspected({b})["global_step"] == 20000001);
}

TEST_CASE("of a damaged checkpoint all that can be read is compared") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 2, {"--checkpoint_every=1"}).exit_code == 0);
  const fs::path data = run / "model.ckpt-0.data-00000-of-00001";
  std::string bytes = read_file(data);
  bytes[bytes.size() / 4] ^= 1;
  write_file(data, bytes);
  const std::vector<std::string> both = {"--diff", (run / "model.ckpt-0").string(),
                                         (run / "model.ckpt-1").string()};
  const Json json = inspected(both, 1);
  CHECK(json["differences"].size() > 1);
  int damaged = 0;
  for (const Json& tensor : json["differences"]) damaged += tensor.contains("error");
  CHECK(damaged == 1);
  const ProcessResult text = run_towers({"inspect", both[0], both[1], both[2]});
  CHECK(text.exit_code == 1);
  CHECK(contains(text.out, "damaged"));
  CHECK(contains(text.err, data.string()));
}

TEST_CASE("several event files are told one after the other, a damaged one to the end") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 2).exit_code == 0);
  const fs::path first = event_file(run), second = folder.path() / "events.out.tfevents.2.b";
  fs::copy_file(first, second);
  const auto lines = [&](int exit_code) {
    const ProcessResult result = run_towers({"inspect", "--json", first.string(), second.string()});
    INFO(result.err);
    CHECK(result.exit_code == exit_code);
    return lines_of(result.out);
  };
  std::vector<std::string> told = lines(0);
  REQUIRE(told.size() == 2);
  CHECK(Json::parse(told[0])["event_file"] == first.string());
  CHECK(Json::parse(told[1])["event_file"] == second.string());
  std::string damaged = read_file(first);
  damaged[damaged.size() - 10] ^= 1;
  write_file(first, damaged);
  told = lines(1);
  REQUIRE(told.size() == 2);
  CHECK(Json::parse(told[0])["damaged"] == true);
  CHECK(Json::parse(told[1])["damaged"] == false);
  // What is no event file among them is not left out in silence.
  CHECK(run_towers({"inspect", second.string(), run.string()}).exit_code == 2);
}

TEST_CASE("an event file's tags, with counts and last values") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 5, {"--summary_every=2"}).exit_code == 0);
  const fs::path file = event_file(run);
  Json json = inspected({file.string()});
  CHECK(json["records"] == 5);  // version, graph, three summaries
  CHECK(json["graph"] == true);
  CHECK(json["torn_bytes"] == 0);
  const Json& rate = named(json["tags"], "tag", "learning_rate");
  CHECK(rate["kind"] == "scalar");
  CHECK(rate["count"] == 3);
  CHECK(rate["first_step"] == 0);
  CHECK(rate["last_step"] == 4);
  CHECK(rate["last"].get<double>() == Approx(0.1));
  const Json& weights = named(json["tags"], "tag", "local3/weights");
  CHECK(weights["kind"] == "histogram");
  CHECK(weights["last"]["count"] == 2304 * 384);
  CHECK(contains(run_towers({"inspect", file.string()}).out, "5 records, with a graph over "));

  const std::string whole = read_file(file);
  write_file(file, whole.substr(0, whole.size() - 10));
  json = inspected({file.string()});
  CHECK(json["records"] == 4);
  CHECK(json["torn_bytes"] > 0);
  CHECK(contains(run_towers({"inspect", file.string()}).out, "are no whole record"));

  std::string damaged = whole;
  damaged[whole.size() - 10] ^= 1;
  write_file(file, damaged);
  json = inspected({file.string()}, 1);
  CHECK(json["records"] == 4);
  CHECK(json["damaged"] == true);
  write_file(file, "");
  CHECK(contains(run_towers({"inspect", file.string()}).err, "is not an event file"));
}
