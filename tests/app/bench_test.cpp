// `towers bench`: what it prints and leaves behind. How fast anything is decides nothing here.

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/app/private_mounts.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

namespace {

ProcessResult bench(const std::vector<std::string>& more) {
  std::vector<std::string> args{"bench", "--device=cpu", "--dataset=synthetic", "--warmup=0",
                                "--repeats=2"};
  args.insert(args.end(), more.begin(), more.end());
  return run_towers(args);
}

std::vector<OrderedJson> rows_of(const ProcessResult& run) {
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::vector<OrderedJson> rows;
  for (const std::string& line : lines_of(run.out)) rows.push_back(OrderedJson::parse(line));
  return rows;
}

std::string names_of(const OrderedJson& row) {
  std::string names;
  for (const auto& [name, value] : row.items()) names += (names.empty() ? "" : ",") + name;
  return names;
}

const std::string kColumns =
    "what,layer,batch_size,num_gpus,precision,allow_tf32,convolution,threads,pin_threads,"
    "input_threads,dataset,input,backend,device,devices,cuda_visible_devices,version,"
    "examples_per_sec,median,lowest,highest,uncertainty,"
    "jitter,repeats,steps,ms_per_step,forward_ms,backward_ms,gflops,executed_gflops,"
    "share_of_peak,mbytes_per_step,gbytes_per_sec,peak_gflops,peak_gbytes_per_sec,input_share";

}  // namespace

TEST_CASE("bench prints a row of JSON for each combination, in order") {
  const std::vector<OrderedJson> rows =
      rows_of(bench({"--json", "--batch_size=4,8", "--num_gpus=1,2", "--compute_threads=1"}));
  REQUIRE(rows.size() == 4);
  const int expected[][2] = {{4, 1}, {4, 2}, {8, 1}, {8, 2}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const OrderedJson& row = rows[i];
    INFO(row.dump());
    CHECK(names_of(row) == kColumns);
    CHECK(row["what"] == "step");
    CHECK(row["batch_size"] == expected[i][0]);
    CHECK(row["num_gpus"] == expected[i][1]);
    CHECK(row["precision"] == "fp32");
    CHECK(row["threads"] == 1);
    CHECK(row["input_threads"].is_null());
    CHECK(row["device"].is_string());
    CHECK(row["repeats"] == 2);
    CHECK(row["lowest"].get<double>() > 0);
    CHECK(row["lowest"] <= row["median"]);
    CHECK(row["median"] <= row["highest"]);
    CHECK(row["lowest"] <= row["examples_per_sec"]);
    CHECK(row["examples_per_sec"] <= row["highest"]);
    CHECK(row["uncertainty"] >= 0);
    CHECK(row["steps"].get<int>() % 2 == 0);
    CHECK(row["peak_gflops"] > 0);
    CHECK(row["peak_gbytes_per_sec"] > 0);
    // 105 MFLOP for each example.
    CHECK(row["gflops"].get<double>() ==
          Approx(row["examples_per_sec"].get<double>() * 0.1053).epsilon(0.001));
    // Fewer are executed, by Winograd's transforms: that is what the peak bounds.
    CHECK(row["executed_gflops"] < row["gflops"]);
    CHECK(row["share_of_peak"].get<double>() ==
          Approx(row["executed_gflops"].get<double>() / row["peak_gflops"].get<double>()));
    CHECK(row["gbytes_per_sec"].get<double>() ==
          Approx(row["mbytes_per_step"].get<double>() / row["ms_per_step"].get<double>()));
    const double examples = row["batch_size"].get<double>() * row["num_gpus"].get<double>();
    CHECK(row["ms_per_step"].get<double>() ==
          Approx(1000 * examples / row["examples_per_sec"].get<double>()).epsilon(0.001));
  }
}

TEST_CASE("bench leaves empty what it counts as fp32 has it, at another precision") {
  const std::vector<OrderedJson> rows =
      rows_of(bench({"--json", "--batch_size=2", "--precision=bf16,fp64", "--compute_threads=1"}));
  REQUIRE(rows.size() == 2);
  for (const OrderedJson& row : rows) {
    CHECK(row["gflops"] > 0);
    for (const char* name : {"share_of_peak", "mbytes_per_step", "gbytes_per_sec"}) {
      INFO(name);
      CHECK(row[name].is_null());
    }
  }
}

TEST_CASE("bench measures the input, alone and with steps") {
  const std::vector<OrderedJson> input =
      rows_of(bench({"--what=input", "--json", "--batch_size=8", "--input_threads=0,1"}));
  REQUIRE(input.size() == 2);
  CHECK(input[0]["threads"] == 0);
  CHECK(input[1]["threads"] == 1);
  CHECK(input[1]["examples_per_sec"] > 0);
  CHECK(input[1]["gflops"].is_null());
  CHECK(input[1]["precision"].is_null());
  const std::vector<OrderedJson> train =
      rows_of(bench({"--what=train", "--json", "--batch_size=8"}));
  REQUIRE(train.size() == 1);
  CHECK(train[0]["examples_per_sec"] > 0);
  CHECK(train[0]["input_share"] >= 0);
  CHECK(train[0]["input_share"] < 1);
}

TEST_CASE("bench measures the layers of a step, then the rest and all of it") {
  const std::vector<OrderedJson> rows =
      rows_of(bench({"--what=layers", "--json", "--batch_size=8", "--compute_threads=2"}));
  const char* expected[] = {"conv1",  "pool1",  "norm1",          "conv2", "norm2", "pool2",
                            "local3", "local4", "softmax_linear", "rest",  "all"};
  REQUIRE(rows.size() == std::size(expected));
  double milliseconds = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].dump());
    CHECK(names_of(rows[i]) == kColumns);
    CHECK(rows[i]["layer"] == expected[i]);
    if (i + 2 < rows.size()) CHECK(rows[i]["forward_ms"] > 0);
    if (i + 1 < rows.size())
      milliseconds += rows[i]["forward_ms"].get<double>() + rows[i]["backward_ms"].get<double>();
  }
  CHECK(rows[0]["gflops"] > rows[0]["executed_gflops"]);
  CHECK(rows[6]["gflops"].get<double>() ==
        Approx(rows[6]["executed_gflops"].get<double>()));  // a dense layer
  CHECK(rows[1]["gflops"].is_null());                       // a pool has no multiply-adds
  CHECK(rows[1]["mbytes_per_step"] > 0);
  CHECK(rows.back()["examples_per_sec"] > 0);
  CHECK(rows.back()["ms_per_step"].get<double>() <= Approx(milliseconds));

  TemporaryFolder folder;
  const std::string csv = "--csv=" + (folder.path() / "layers.csv").string();
  CHECK(lines_of(bench({"--what=layers", "--batch_size=4", csv}).out).size() == 2 + rows.size());
  CHECK(bench({"--what=layers", "--batch_size=4", csv}).out.empty());
}

TEST_CASE("bench prints a table, with rates as tf_cnn_benchmarks prints them") {
  const ProcessResult run = bench({"--batch_size=4,8", "--compute_threads=1"});
  INFO(run.out);
  REQUIRE(run.exit_code == 0);
  const std::vector<std::string> lines = lines_of(run.out);
  REQUIRE(lines.size() == 4);  // the machine, the header, and two rows
  CHECK(contains(lines[0], "1 thread"));
  CHECK(contains(lines[0], "GB/s"));
  CHECK(contains(lines[1], "examples/sec"));
  const std::regex kRow(
      R"( +8 +1 +fp32 +auto +1  [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\) .* % +[\d.]+)");
  CHECK(std::regex_match(lines[3], kRow));
}

TEST_CASE("bench leaves out what its file holds already, and adds the rest") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  const std::string csv = "--csv=" + path.string();
  CHECK(lines_of(bench({"--json", csv, "--batch_size=4", "--compute_threads=1"}).out).size() == 1);
  const std::string before = read_file(path);
  CHECK(lines_of(before).front() == kColumns);

  const ProcessResult more = bench({"--json", csv, "--batch_size=4,8", "--compute_threads=1"});
  const std::vector<OrderedJson> rows = rows_of(more);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["batch_size"] == 8);
  CHECK(contains(more.err, "1 of 2 combinations are in " + path.string() + " already"));
  const std::string after = read_file(path);
  CHECK(after.starts_with(before));
  CHECK(lines_of(after).size() == 3);

  // Another number of threads is another measurement.
  CHECK(rows_of(bench({"--json", csv, "--batch_size=4", "--compute_threads=2"})).size() == 1);
  // So are pinned ones.
  const std::vector<std::string> pinned{"--json", csv, "--batch_size=4", "--compute_threads=1",
                                        "--pin_threads"};
  CHECK(rows_of(bench(pinned)).size() == 1);
  CHECK(rows_of(bench(pinned)).empty());
}

TEST_CASE("bench measures again what its file holds of another data set") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  const std::vector<std::string> input{"--what=input", "--batch_size=4", "--json",
                                       "--csv=" + path.string()};
  CHECK(rows_of(bench(input)).size() == 1);
  CHECK(rows_of(bench(input)).empty());
  std::string text = read_file(path);
  const std::size_t at = text.find(",synthetic,");
  REQUIRE(at != std::string::npos);
  write_file(path, text.replace(at, 11, ",cifar10,"));
  CHECK(rows_of(bench(input)).size() == 1);
}

TEST_CASE("bench refuses a file that it cannot write before it measures") {
  if (!private_mounts_allowed()) return skip("mounting a file system is not allowed here");
  TemporaryFolder folder;
  const auto dir = folder.path() / "sweeps";
  const std::string csv = "--csv=" + (dir / "sweep.csv").string();
  fs::create_directory(dir);
  REQUIRE(bench({"--batch_size=4", csv}).exit_code == 0);
  REQUIRE(mount_read_only(dir));
  const ProcessResult run = bench({"--batch_size=4,8", csv});
  CHECK(run.exit_code == 1);
  CHECK(run.out.empty());
  CHECK(lines_of(run.err).size() == 1);
  CHECK(contains(run.err, "sweep.csv"));
}

TEST_CASE("bench goes on after a combination that cannot be measured, and says so at the end") {
  const ProcessResult run = bench({"--json", "--batch_size=4", "--precision=fp16,fp32"});
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "--precision=fp16"));
  REQUIRE(lines_of(run.out).size() == 1);
  CHECK(OrderedJson::parse(run.out)["precision"] == "fp32");
}

TEST_CASE("bench goes on after a combination that is wrong usage alone, and names what differs") {
  const ProcessResult run =
      bench({"--json", "--batch_size=2", "--precision=fp32,fp64", "--convolution=auto,winograd4"});
  CHECK(run.exit_code == 1);
  CHECK(lines_of(run.out).size() == 3);
  CHECK(contains(run.err, "--precision=fp64 --convolution=winograd4: "));
  // The first one ends it: nothing was measured yet.
  const ProcessResult first = bench({"--precision=fp64", "--convolution=winograd4,auto"});
  CHECK(first.exit_code == 2);
  CHECK(first.out.empty());
  CHECK(lines_of(first.err).size() == 1);
}

TEST_CASE("bench ends where its rows cannot be kept or shown, and goes on later") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  const std::vector<std::string> args{
      "bench",  "--device=cpu",     "--warmup=0",          "--repeats=1",
      "--json", "--batch_size=2,3", "--compute_threads=1", "--csv=" + path.string()};
  // Room for the header and a part of a row.
  const long room = static_cast<long>(kColumns.size()) + 20;
  const ProcessResult full = run_towers(args, {.file_size_limit = room});
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(lines_of(full.out).size() == 1);  // what was measured is shown all the same
  CHECK(lines_of(full.err).size() == 1);  // the second is not even begun
  CHECK(contains(full.err, path.string()));
  CHECK_FALSE(contains(full.err, "--batch_size"));
  CHECK(rows_of(run_towers(args)).size() == 2);
  CHECK(lines_of(read_file(path)).size() == 3);  // nothing is left of the row cut off
}

TEST_CASE("bench does not take a machine whose limits could not be measured for one without") {
#ifdef TOWERS_SANITIZED
  return skip("a sanitizer needs all address space");
#endif
  const std::vector<std::string> args{
      "bench",      "--device=cpu", "--json", "--batch_size=1,2", "--compute_threads=1",
      "--warmup=0", "--repeats=20"};
  long most = 0;  // KiB of address space, the 256 MiB included that the limits are measured on
  {
    Process run(args);
    REQUIRE(run.wait_for_output("\"batch_size\":1,"));
    std::ifstream status("/proc/" + std::to_string(run.pid()) + "/status");
    for (std::string word; most == 0 && status >> word;)
      if (word == "VmPeak:") status >> most;
  }
  REQUIRE(most > 0);
  const ProcessResult run = run_towers(args, {.address_space_limit = (most - 128 * 1024) * 1024});
  INFO(run.out);
  CHECK(run.exit_code == 1);
  CHECK(run.out.empty());
  CHECK(lines_of(run.err).size() == 2);  // one for each combination
}

TEST_CASE("bench refuses lists that do not matter to what it measures") {
  const ProcessResult run = bench({"--what=input", "--precision=fp32,bf16"});
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "--precision has several values"));
  CHECK(bench({"--input_threads=1,2"}).exit_code == 2);
  CHECK(bench({"--what=layers", "--num_gpus=2"}).exit_code == 2);
  const ProcessResult devices = bench({"--what=layers", "--cpu_devices=2"});
  CHECK(devices.exit_code == 2);
  CHECK(lines_of(devices.err).size() == 1);
  CHECK(contains(devices.err, "leave --cpu_devices out"));
  CHECK(bench({"--simd=ABACUS"}).exit_code == 2);
}
