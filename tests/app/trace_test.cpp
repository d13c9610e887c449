// --trace_file, run as people run it, and read by the rules of the Trace Event Format.

#include <catch2/catch.hpp>

#include <signal.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/app/quick_run.h"

using namespace towers::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Timeline {
  std::map<int, std::string> threads;               // by tid
  std::map<std::string, std::set<std::string>> on;  // names of events, by thread
  std::vector<int> steps;
};

// Microseconds as Perfetto keeps them: rounded to whole nanoseconds.
long long nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// Every rule that a viewer relies on: an object with an array of events; metadata names each
// thread; complete events have times that are not negative, come by their begin, and nest to the
// nanosecond (Perfetto moves one that reaches over its outer event's end to a line of its own).
Timeline checked(const fs::path& file) {
  Timeline timeline;
  const json document = json::parse(read_file(file));
  REQUIRE(document.at("traceEvents").is_array());
  std::map<int, std::vector<long long>> open;  // ends of the events around, by thread
  long long last = 0;
  for (const json& event : document["traceEvents"]) {
    REQUIRE(event.at("name").is_string());
    REQUIRE(event.at("pid").is_number_unsigned());
    const int thread = event.at("tid").get<int>();
    if (event.at("ph") == "M") {
      if (event["name"] == "thread_name") timeline.threads[thread] = event["args"]["name"];
      continue;
    }
    REQUIRE(event["ph"] == "X");
    const long long begin = nanoseconds(event.at("ts")), length = nanoseconds(event.at("dur"));
    REQUIRE(begin >= last);
    REQUIRE(length >= 0);
    last = begin;
    auto& around = open[thread];
    while (!around.empty() && around.back() <= begin) around.pop_back();
    if (!around.empty()) REQUIRE(begin + length <= around.back());
    around.push_back(begin + length);
    REQUIRE(timeline.threads.count(thread) == 1);
    timeline.on[timeline.threads[thread]].insert(event["name"]);
    if (event["name"] == "step") timeline.steps.push_back(event["args"]["number"]);
  }
  return timeline;
}

bool has(const Timeline& timeline, const std::string& thread, const std::string& event) {
  const auto found = timeline.on.find(thread);
  return found != timeline.on.end() && found->second.count(event) == 1;
}

}  // namespace

TEST_CASE("a timeline shows the threads and phases of its first steps") {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "trace.json";
  const ProcessResult run = quick_run(folder.path() / "run", 4,
                                      {"--num_gpus=2", "--cpu_devices=2", "--compute_threads=2",
                                       "--eval_every=2", "--batch_size=64", "--checkpoint_every=1",
                                       "--trace_steps=3", "--trace_file=" + file.string()});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(contains(run.err, file.string()));
  const Timeline timeline = checked(file);
  CHECK(timeline.steps == std::vector<int>{0, 1, 2});
  for (const char* phase :
       {"input", "compute", "averaging", "update", "summaries", "evaluation", "saving"}) {
    INFO(phase);
    CHECK(has(timeline, "training loop", phase));
  }
  CHECK(has(timeline, "training loop", "tower"));  // which leads /cpu:0
  CHECK(has(timeline, "/cpu:1", "tower"));
  CHECK(has(timeline, "input thread 0", "make batch"));
  CHECK(has(timeline, "checkpoint saver", "write checkpoint"));
  // It is of this start, not of the run: going on with its flags does not write it over.
  CHECK_FALSE(contains(read_file(folder.path() / "run" / "flags.txt"), "--trace_file="));
}

TEST_CASE("a run that is stopped, or fails, leaves a whole timeline") {
  TemporaryFolder folder;
  const fs::path stopped = folder.path() / "stopped.json", failed = folder.path() / "failed.json";
  {
    Process run(quick_args(folder.path() / "a", 1000000, {"--trace_file=" + stopped.string()}));
    REQUIRE(run.wait_for_output("step 10,"));
    run.signal(SIGTERM);
    CHECK(run.wait().exit_code == 143);
  }
  const Timeline timeline = checked(stopped);
  CHECK(timeline.steps.size() >= 11);
  CHECK(has(timeline, "checkpoint saver", "write checkpoint"));
  const ProcessResult diverged = quick_run(
      folder.path() / "b", 100, {"--learning_rate=1e30", "--trace_file=" + failed.string()});
  CHECK(diverged.exit_code == 1);
  CHECK_FALSE(checked(failed).on.empty());
}

TEST_CASE("a timeline in the run's folder keeps no new run out, and is replaced by its own alone") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", trace = run / "trace.json";
  REQUIRE(quick_run(run, 1, {"--trace_file=" + trace.string()}).exit_code == 0);
  const std::string before = read_file(trace);
  const ProcessResult without = quick_run(run, 1);
  INFO(without.err);
  CHECK(without.exit_code == 0);
  CHECK(read_file(trace) == before);
  CHECK(quick_run(run, 2, {"--trace_file=" + trace.string()}).exit_code == 0);
  CHECK(read_file(trace) != before);
}

TEST_CASE("a timeline that cannot be written costs a warning, and nothing of anybody's") {
  TemporaryFolder folder;
  const fs::path notes = folder.path() / "notes.json", gone = folder.path() / "gone";
  write_file(notes, "{}");
  const ProcessResult refused =
      quick_run(folder.path() / "run", 1, {"--trace_file=" + notes.string()});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "not the timeline"));
  CHECK(read_file(notes) == "{}");

  Process run(quick_args(folder.path() / "run", 1000000,
                         {"--trace_file=" + (gone / "trace.json").string()}));
  REQUIRE(run.wait_for_output("step 0,"));
  fs::remove_all(gone);
  run.signal(SIGUSR1);
  const ProcessResult result = run.wait();
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "warning: cannot"));
  CHECK(contains(result.err, (gone / "trace.json").string()));
}

TEST_CASE("flag --progress tells the steps made") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 3, {"--progress"});
  CHECK(contains(run.err, "step 3 of 3 (100.0%)"));
}
