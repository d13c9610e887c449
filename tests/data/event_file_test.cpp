// Event files against TensorFlow's bytes, and what a reader finds at any moment.

#include "data/event_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/data/event_support.h"
#include "tests/data/output_support.h"

namespace towers::data {
namespace {

using namespace std::chrono_literals;

const std::filesystem::path kGolden = std::filesystem::path(TOWERS_SOURCE_DIR) / "tests" / "golden";

// The same message with the wall time of `golden`: both start with that field.
std::string with_time_of(const std::string& golden, std::string message) {
  return message.replace(0, 9, golden.substr(0, 9));
}

TEST_CASE("Records are framed as TensorFlow frames them") {
  const auto golden = nlohmann::json::parse(test::read_file(kGolden / "events.json"));
  for (const auto& [name, event] : golden["events"].items()) {
    INFO(name);
    const std::string message = test::from_hex(event["message"]);
    const std::string record = test::from_hex(event["record"]);
    CHECK(frame_record(message) == record);
    proto::Event parsed;
    REQUIRE(parsed.ParseFromString(message));
    CHECK(parsed.SerializeAsString() == message);
  }
}

TEST_CASE("The writer's messages are TensorFlow's byte for byte") {
  const auto golden = nlohmann::json::parse(test::read_file(kGolden / "events.json"))["events"];
  const auto bytes = [&](const char* name) { return test::from_hex(golden[name]["message"]); };
  proto::Event scalars;
  scalars.ParseFromString(bytes("scalars"));
  proto::Event start;
  start.ParseFromString(bytes("session_start"));

  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path());
  writer.begin_summary(scalars.step());
  for (const auto& value : scalars.summary().value())
    writer.scalar(value.tag(), value.simple_value());
  writer.end_summary();
  writer.add_session_start(start.step());
  writer.flush();
  const auto messages = test::read_records(test::read_file(writer.path()));
  REQUIRE(messages.size() == 3);
  for (const auto& [name, message] : {std::pair{"file_version", messages[0]},
                                      {"scalars", messages[1]},
                                      {"session_start", messages[2]}}) {
    INFO(name);
    CHECK(with_time_of(bytes(name), message) == bytes(name));
  }
}

TEST_CASE("The shared records and summaries are met byte for byte") {
  const auto shared = test::shared_dir();
  if (shared.empty()) return test::skip("needs TensorFlow's values in ../shared");
  const auto golden =
      nlohmann::json::parse(test::read_file(shared / "golden" / "events_histogram.json"));
  for (const auto& record : golden["records"]) {
    const std::string bytes = test::from_hex(record["record_hex"]);
    const auto messages = test::read_records(bytes);
    REQUIRE(messages.size() == 1);
    CHECK(frame_record(messages[0]) == bytes);
  }
  std::vector<nlohmann::json> histograms{golden["histogram"]};
  histograms.insert(histograms.end(), golden["more_histograms"].begin(),
                    golden["more_histograms"].end());
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path());
  for (const auto& h : histograms) {
    Histogram histogram;
    histogram.add(h["values"].get<std::vector<float>>());
    writer.begin_summary(0);
    writer.histogram(h["tag"], histogram);
    writer.end_summary();
  }
  writer.flush();
  const auto events = test::read_events(writer.path());
  REQUIRE(events.size() == 1 + histograms.size());
  for (std::size_t i = 0; i < histograms.size(); ++i)
    CHECK(events[i + 1].summary().SerializeAsString() ==
          test::from_hex(histograms[i]["summary_hex"]));
}

TEST_CASE("The file starts with its version, and all that is added follows in order") {
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path());
  const double before = static_cast<double>(std::time(nullptr)) - 1;
  writer.add_graph("a graph");
  writer.add_session_start(41);
  for (int step = 41; step < 141; ++step) {
    writer.begin_summary(step);
    writer.scalar("loss", static_cast<float>(step));
    writer.end_summary();
  }
  writer.flush();
  const auto events = test::read_events(writer.path());
  REQUIRE(events.size() == 103);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].graph_def() == "a graph");
  CHECK(events[2].step() == 41);
  CHECK(events[2].session_log().status() == proto::SessionLog::START);
  for (int i = 0; i < 100; ++i) {
    const auto& event = events[static_cast<std::size_t>(i + 3)];
    CHECK(event.step() == 41 + i);
    CHECK(event.summary().value(0).simple_value() == static_cast<float>(41 + i));
    CHECK(event.wall_time() >= before);
  }
  CHECK(test::read_records(test::read_file(writer.path())).size() == events.size());
}

TEST_CASE("The name is what TensorBoard looks for, and never that of another file") {
  const test::TemporaryFolder folder;
  std::vector<std::unique_ptr<EventFileWriter>> writers;
  for (int i = 0; i < 5; ++i) {
    auto& writer = writers.emplace_back(std::make_unique<EventFileWriter>(folder.path()));
    writer->add_session_start(i);
    writer->flush();
    const std::string name = writer->path().filename().string();
    CHECK(name.starts_with("events.out.tfevents."));
    CHECK(name.find_first_not_of("0123456789", 20) == 30);  // seconds, ten digits
    CHECK(name[30] == '.');
  }
  CHECK(test::names_in(folder.path()).size() == 5);
  for (int i = 0; i < 5; ++i)
    CHECK(test::read_events(writers[static_cast<std::size_t>(i)]->path()).at(1).step() == i);
}

TEST_CASE("Records reach the file without a flush") {
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path(), 1ms);
  writer.add_session_start(3);
  while (test::read_events(writer.path()).size() < 2) std::this_thread::sleep_for(1ms);
}

TEST_CASE("Destruction writes what is queued") {
  const test::TemporaryFolder folder;
  std::filesystem::path path;
  {
    EventFileWriter writer(folder.path(), 1h);
    path = writer.path();
    writer.add_session_start(3);
  }
  CHECK(test::read_events(path).size() == 2);
}

TEST_CASE("After a kill the file is readable up to the tear") {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    EventFileWriter writer(folder.path(), 0ms);
    for (std::int64_t step = 0;; ++step) {
      writer.begin_summary(step);
      writer.scalar("loss", 1);
      writer.end_summary();
    }
  }
  const auto content = [&]() -> std::string {
    const auto names = test::names_in(folder.path());
    return names.empty() ? "" : test::read_file(folder.path() / names.front());
  };
  while (content().size() < 10000) std::this_thread::sleep_for(1ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const std::string bytes = content();
  std::size_t end = 0;
  const auto messages = test::read_records(bytes, &end);
  CHECK(messages.size() > 100);
  CHECK(bytes.size() - end < 64);  // at most one torn record
}

TEST_CASE("A folder that can't be written is named on construction") {
  const std::filesystem::path missing = "/nonexistent-folder/of/events";
  const std::string message = test::error_of([&] { EventFileWriter writer(missing); });
  CHECK(test::contains(message, "cannot write " + missing.string()));
  CHECK(test::contains(message, "No such file"));
}

TEST_CASE("A value outside a summary is a fault of the program") {
  const test::TemporaryFolder folder;
  EventFileWriter writer(folder.path());
  CHECK_THROWS_AS(writer.scalar("loss", 1), std::logic_error);
  CHECK_THROWS_AS(writer.end_summary(), std::logic_error);
}

}  // namespace
}  // namespace towers::data
