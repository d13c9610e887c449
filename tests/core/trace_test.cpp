// Recording what threads do.
#include "core/trace.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace towers;

TEST_CASE("spans of all threads are recorded under their names, inner ones first") {
  { const TraceSpan before("before"); }
  start_trace(100);
  name_trace_thread("main");
  {
    const TraceSpan outer("outer", 7);
    std::thread other([] {
      name_trace_thread("other");
      const TraceSpan span("work");
    });
    other.join();
    const TraceSpan inner("inner");
  }
  const Trace trace = stop_trace();
  { const TraceSpan after("after"); }
  REQUIRE(trace.threads == std::vector<std::string>{"other", "main"});
  REQUIRE(trace.events.size() == 3);
  CHECK(trace.events[0].name == std::string("work"));
  CHECK(trace.events[0].thread == 0);
  CHECK(trace.events[1].name == std::string("inner"));
  CHECK(trace.events[2].name == std::string("outer"));
  CHECK(trace.events[2].number == 7);
  CHECK(trace.events[2].thread == 1);
  CHECK(trace.events[2].begin <= trace.events[1].begin);
  CHECK(trace.events[2].end >= trace.events[1].end);
  CHECK(stop_trace().events.empty());
}

TEST_CASE("a recording holds so many events and counts the others") {
  start_trace(2);
  for (int i = 0; i < 5; ++i) const TraceSpan span("step", i);
  const Trace trace = stop_trace();
  CHECK(trace.events.size() == 2);
  CHECK(trace.dropped == 3);
}

TEST_CASE("what began before a recording, or ends after it, is not in it") {
  start_trace(10);
  {
    const TraceSpan across("across");
    CHECK(stop_trace().events.empty());
    start_trace(10);
  }
  { const TraceSpan within("within"); }
  const Trace trace = stop_trace();
  REQUIRE(trace.events.size() == 1);
  CHECK(trace.events[0].name == std::string("within"));
  CHECK_FALSE(tracing());
}
