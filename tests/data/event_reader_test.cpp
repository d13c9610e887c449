// Event files read back: whole, torn, damaged.
#include "data/event_reader.h"

#include <catch2/catch.hpp>

#include "data/event_file.h"
#include "protos/event.pb.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

using namespace towers;
using namespace towers::data;
using namespace towers::test;

namespace {

std::string record(const proto::Event& event) {
  return frame_record(event.SerializeAsString());
}

std::string version_record(const std::string& version = "brain.Event:2") {
  proto::Event event;
  event.set_file_version(version);
  return record(event);
}

std::string scalar_record(std::int64_t step, float value) {
  proto::Event event;
  event.set_step(step);
  event.set_wall_time(1000.5 + static_cast<double>(step));
  auto* v = event.mutable_summary()->add_value();
  v->set_tag("loss");
  v->set_simple_value(value);
  return record(event);
}

struct File {
  explicit File(const std::string& content) { write_file(path, content); }
  TemporaryFolder folder;
  std::filesystem::path path = folder.path() / "events";
};

std::vector<EventRecord> all(EventReader& reader) {
  std::vector<EventRecord> records;
  for (EventRecord record; reader.next(record);) records.push_back(record);
  return records;
}

}  // namespace

TEST_CASE("what the writer wrote is read back") {
  TemporaryFolder folder;
  Histogram histogram;
  histogram.add(std::vector{1.0f, 2.0f, 6.0f});
  std::filesystem::path path;
  {
    EventFileWriter writer(folder.path());
    writer.add_graph("graph");
    writer.add_session_start(3);
    writer.begin_summary(5);
    writer.scalar("loss", 2.5f);
    writer.histogram("weights", histogram);
    writer.end_summary();
    writer.flush();
    path = writer.path();
  }
  CHECK(is_event_file(path));
  EventReader reader(path);
  const std::vector<EventRecord> records = all(reader);
  CHECK(reader.torn_bytes() == 0);
  REQUIRE(records.size() == 3);
  CHECK(records[0].graph);
  CHECK(records[1].session_start);
  CHECK(records[1].step == 3);
  CHECK_FALSE(records[2].graph);
  CHECK(records[2].step == 5);
  CHECK(records[2].wall_time > 1e9);
  REQUIRE(records[2].values.size() == 2);
  CHECK(records[2].values[0].tag == "loss");
  CHECK(records[2].values[0].kind == EventValue::Kind::scalar);
  CHECK(records[2].values[0].value == 2.5);
  const EventValue& weights = records[2].values[1];
  CHECK(weights.kind == EventValue::Kind::histogram);
  CHECK(weights.count == 3);
  CHECK(weights.value == 3);
  CHECK(weights.least == 1);
  CHECK(weights.largest == 6);
}

TEST_CASE("a file cut off anywhere ends with its last whole record") {
  const std::string head = version_record() + scalar_record(1, 1);
  const std::string last = scalar_record(2, 2);
  for (std::size_t kept = 0; kept < last.size(); ++kept) {
    const File file(head + last.substr(0, kept));
    EventReader reader(file.path);
    CHECK(all(reader).size() == 1);
    CHECK(reader.torn_bytes() == kept);
  }
  const File zeros(head + std::string(100000, '\0'));
  EventReader reader(zeros.path);
  CHECK(all(reader).size() == 1);
  CHECK(reader.torn_bytes() == 100000);
}

TEST_CASE("a wrong byte within is an error that names the file and the place") {
  const std::string head = version_record();
  const std::string first = scalar_record(1, 1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::string damaged = head + first + scalar_record(2, 2);
    damaged[head.size() + i] ^= 4;
    const File file(damaged);
    EventReader reader(file.path);
    const std::string message = error_of([&] { all(reader); });
    INFO(i << " " << message);
    CHECK(contains(message, file.path.string() + " is damaged: the record at byte " +
                                std::to_string(head.size()) + " has a wrong checksum"));
  }
  const File no_event(head + frame_record("\xff\xff\xff"));
  EventReader reader(no_event.path);
  CHECK(contains(error_of([&] { all(reader); }), "is not an event"));
}

TEST_CASE("files of other kinds are no event files") {
  for (const std::string& content :
       {std::string(), std::string("text that is long enough for a record"), std::string(64, '\0'),
        scalar_record(1, 1), version_record("other"), version_record().substr(0, 20)}) {
    const File file(content);
    CHECK_FALSE(is_event_file(file.path));
    CHECK(contains(error_of([&] { EventReader reader(file.path); }), "is not an event file"));
  }
  TemporaryFolder folder;
  CHECK_FALSE(is_event_file(folder.path()));
  CHECK_FALSE(is_event_file(folder.path() / "none"));
}
