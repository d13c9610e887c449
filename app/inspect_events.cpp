// A listing of an event file's tags.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "app/inspect.h"
#include "app/json_text.h"
#include "cli/console.h"
#include "core/error.h"
#include "data/event_reader.h"

namespace towers::app {
namespace {

using data::EventValue;

struct Tag {
  std::int64_t count = 0, first_step = 0, last_step = 0;
  EventValue last;
};

struct Content {
  std::int64_t records = 1;  // that of the version is behind us
  bool graph = false;
  double first_time = 0, last_time = 0;
  std::map<std::string, Tag> tags;
  std::uint64_t torn_bytes = 0;
  std::string fault;
};

Content read_content(const std::filesystem::path& path) {
  data::EventReader reader(path);
  Content content;
  data::EventRecord record;
  try {
    for (; reader.next(record); ++content.records) {
      if (content.records == 1) content.first_time = record.wall_time;
      content.last_time = record.wall_time;
      content.graph = content.graph || record.graph;
      for (const EventValue& value : record.values) {
        Tag& tag = content.tags[value.tag];
        if (tag.count++ == 0) tag.first_step = record.step;
        tag.last_step = record.step;
        tag.last = value;
      }
    }
    content.torn_bytes = reader.torn_bytes();
  } catch (const Error& error) {
    content.fault = error.what();
  }
  return content;
}

const char* kind_of(const EventValue& value) {
  switch (value.kind) {
    case EventValue::Kind::scalar:
      return "scalar";
    case EventValue::Kind::histogram:
      return "histogram";
    case EventValue::Kind::other:
      break;
  }
  return "other";
}

std::string last_text(const EventValue& value) {
  if (value.kind == EventValue::Kind::scalar) return short_number(value.value);
  if (value.kind == EventValue::Kind::other) return "not read";
  return "mean " + short_number(value.value) + ", " + short_number(value.least) + " to " +
         short_number(value.largest);
}

void print_json(const std::filesystem::path& path, const Content& content) {
  Json tags = Json::array();
  for (const auto& [name, tag] : content.tags) {
    tags.push_back({{"tag", name},
                    {"kind", kind_of(tag.last)},
                    {"count", tag.count},
                    {"first_step", tag.first_step},
                    {"last_step", tag.last_step}});
    Json& row = tags.back();
    if (tag.last.kind == EventValue::Kind::scalar) row["last"] = tag.last.value;
    if (tag.last.kind == EventValue::Kind::histogram)
      row["last"] = {{"count", tag.last.count},
                     {"min", tag.last.least},
                     {"max", tag.last.largest},
                     {"mean", tag.last.value}};
  }
  Json json = {{"event_file", named(path.string())},
               {"records", content.records},
               {"graph", content.graph},
               {"first_time", content.first_time},
               {"last_time", content.last_time},
               {"torn_bytes", content.torn_bytes},
               {"damaged", !content.fault.empty()},
               {"tags", tags}};
  print(json);
}

void print_table(const std::filesystem::path& path, const Content& content) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& [name, tag] : content.tags)
    cells.push_back({cli::one_line(name), kind_of(tag.last), std::to_string(tag.count),
                     std::to_string(tag.first_step), std::to_string(tag.last_step),
                     last_text(tag.last)});
  if (!cells.empty())
    cli::print_line(
        cli::table({"tag", "kind", "count", "first step", "last step", "last value"}, cells));
  std::string line = cli::one_line(path.string()) + ": " + std::to_string(content.records) +
                     " records" + (content.graph ? ", with a graph" : "") + " over " +
                     cli::human_duration(content.last_time - content.first_time);
  if (content.fault.empty()) line += ", all checksums right";
  if (content.torn_bytes > 0)
    line += "; the last " + std::to_string(content.torn_bytes) +
            " bytes are no whole record: it is being written, or its writer was killed";
  cli::print_line(line);
}

}  // namespace

void inspect_events(const std::filesystem::path& path, bool json) {
  const Content content = read_content(path);
  if (json)
    print_json(path, content);
  else
    print_table(path, content);
  if (!content.fault.empty()) throw Error(content.fault);
}

}  // namespace towers::app
