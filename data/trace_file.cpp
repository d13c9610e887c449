#include "data/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "data/file.h"
#include "data/run_folder.h"

namespace towers::data {
namespace {

constexpr std::string_view kStart = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// Thread names hold no other character that JSON wants escaped.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

// Microseconds to three digits: no floating point, whose digits a long run would lose.
std::string microseconds(TraceClock::duration time) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

std::string metadata(const char* kind, const std::string& ids, const std::string& argument) {
  return std::string("{\"name\":\"") + kind + "\",\"ph\":\"M\"," + ids + ",\"args\":{" + argument +
         "}}";
}

std::string event_text(const TraceEvent& event, TraceClock::time_point start,
                       const std::string& ids) {
  std::string text = std::string("{\"name\":\"") + event.name + "\",\"ph\":\"X\"," + ids +
                     ",\"ts\":" + microseconds(event.begin - start) +
                     ",\"dur\":" + microseconds(event.end - event.begin);
  if (event.number >= 0) text += ",\"args\":{\"number\":" + std::to_string(event.number) + "}";
  return text + "}";
}

// As many bytes as a timeline's mark has, or all that there are.
std::string start_of(const std::filesystem::path& path) {
  std::string start(kStart.size(), '\0');
  std::ifstream file(path);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return start;
}

}  // namespace

bool is_trace_file(const std::filesystem::path& path) {
  return start_of(path) == kStart;
}

void check_trace_file(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  require_writable_folder(folder.empty() ? "." : folder);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  const std::string start = start_of(path);
  if (!start.empty() && start != kStart)
    throw Error(
        "--trace_file=" + path.string() +
        " exists and is not the timeline of a run, so it was not touched; give another name");
}

void write_trace_file(const std::filesystem::path& path, Trace trace) {
  // By begin, what encloses others before them: the order that viewers read without sorting.
  std::sort(trace.events.begin(), trace.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  const std::string process = "\"pid\":" + std::to_string(::getpid());
  const auto ids = [&](std::size_t thread) {
    return process + ",\"tid\":" + std::to_string(thread + 1);
  };
  AtomicFile file(path);
  std::string text(kStart);
  text += "\n" + metadata("process_name", ids(0), "\"name\":\"towers train\"");
  for (std::size_t t = 0; t < trace.threads.size(); ++t) {
    text += ",\n" + metadata("thread_name", ids(t), "\"name\":" + json_string(trace.threads[t]));
    text += ",\n" + metadata("thread_sort_index", ids(t), "\"sort_index\":" + std::to_string(t));
  }
  for (const TraceEvent& event : trace.events) {
    text += ",\n" + event_text(event, trace.start, ids(event.thread));
    if (text.size() < 1u << 20) continue;
    file.write(text);
    text.clear();
  }
  text += "\n],\"otherData\":{\"dropped_events\":" + std::to_string(trace.dropped) + "}}\n";
  file.write(text);
  file.commit();
}

}  // namespace towers::data
