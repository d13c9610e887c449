#include "cli/format.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <limits>

using namespace towers::cli;

namespace {

// 2026-12-01 10:11:12.345678 in a zone five and a half hours east of Greenwich.
class Zone {
 public:
  Zone() {
    ::setenv("TZ", "XXX-5:30", 1);
    ::tzset();
  }
  ~Zone() {
    ::unsetenv("TZ");
    ::tzset();
  }
};

constexpr std::chrono::system_clock::time_point when{std::chrono::microseconds{1796100072345678}};

}  // namespace

TEST_CASE("lines have the reference's form") {
  const Zone zone;
  CHECK(timestamp(when) == "2026-12-01 10:11:12.345678");
  CHECK(step_line(when, 20, 4.6249, 1834.46, 0.0696) ==
        "2026-12-01 10:11:12.345678: step 20, loss = 4.62 (1834.5 examples/sec; 0.070 sec/batch)");
  CHECK(step_line(when, 0, 0, 0, 12.3456) ==
        "2026-12-01 10:11:12.345678: step 0, loss = 0.00 (0.0 examples/sec; 12.346 sec/batch)");
  CHECK(step_line(when, std::numeric_limits<std::int64_t>::max(), 1e300, 1e300, 1e300).size() >
        900);
  CHECK(precision_line(when, 0.8616) == "2026-12-01 10:11:12.345678: precision @ 1 = 0.862");
}

TEST_CASE("microseconds keep their zeros, before 1970 too") {
  const Zone zone;
  using namespace std::chrono;
  CHECK(timestamp(system_clock::time_point{seconds{0}}) == "1970-01-01 05:30:00.000000");
  CHECK(timestamp(system_clock::time_point{microseconds{7}}) == "1970-01-01 05:30:00.000007");
  CHECK(timestamp(system_clock::time_point{microseconds{-1}}) == "1970-01-01 05:29:59.999999");
}

TEST_CASE("a table of two columns is aligned") {
  CHECK(table({{"devices", "/cpu:0"},
               {"batch", "128 x 4 = 512"},
               {"gr\u00f6\u00dfe", "1"},
               {"none", ""}}) ==
        "devices  /cpu:0\n"
        "batch    128 x 4 = 512\n"
        "gr\u00f6\u00dfe    1\n"
        "none");
  CHECK(table({}).empty());
}

TEST_CASE("a table with a header sets numbers to the right") {
  CHECK(table({"device", "memory", "note"},
              {{"/gpu:0", "9.5 GB", "3rd"}, {"/cpu:0", "128.0 GB"}, {"/gpu:10", "", "x"}}) ==
        "device     memory  note\n"
        "/gpu:0     9.5 GB  3rd\n"
        "/cpu:0   128.0 GB\n"
        "/gpu:10            x");
  CHECK(table({"a", "b"}, {}) == "a  b");
  CHECK(table({"a"}, {{"1", "more"}, {"22"}}) == " a\n 1  more\n22");
}

TEST_CASE("bytes are told in powers of 1000") {
  CHECK(human_bytes(0) == "0 bytes");
  CHECK(human_bytes(1) == "1 byte");
  CHECK(human_bytes(999) == "999 bytes");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(170052171) == "170.1 MB");
  CHECK(human_bytes(999949) == "999.9 kB");
  CHECK(human_bytes(999950) == "1.0 MB");
  CHECK(human_bytes(1500000000) == "1.5 GB");
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "18.4 EB");
}

TEST_CASE("durations are told in the units that a person uses") {
  CHECK(human_duration(0) == "0 ms");
  CHECK(human_duration(-3) == "0 ms");
  CHECK(human_duration(0.0854) == "85 ms");
  CHECK(human_duration(0.9996) == "1.0 s");
  CHECK(human_duration(12.34) == "12.3 s");
  CHECK(human_duration(59.94) == "59.9 s");
  CHECK(human_duration(59.96) == "1 min 00 s");
  CHECK(human_duration(123.4) == "2 min 03 s");
  CHECK(human_duration(3599.4) == "59 min 59 s");
  CHECK(human_duration(3599.6) == "1 h 00 min");
  CHECK(human_duration(11235) == "3 h 07 min");
  CHECK(human_duration(86399) == "1 d 00 h");
  CHECK(human_duration(187200) == "2 d 04 h");
  CHECK(human_duration(std::numeric_limits<double>::infinity()) == "for ever");
  CHECK(human_duration(std::numeric_limits<double>::quiet_NaN()) == "for ever");
}

TEST_CASE("thousands are set apart") {
  CHECK(with_thousands(0) == "0");
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(-999) == "-999");
  CHECK(with_thousands(1000) == "1,000");
  CHECK(with_thousands(-12345) == "-12,345");
  CHECK(with_thousands(1234567) == "1,234,567");
  CHECK(with_thousands(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("a name from a file neither breaks a line nor steers a terminal") {
  CHECK(one_line("a\nb\x1b[2J\r\t\x7f") == "a?b?[2J???");
  CHECK(one_line("\u00e9 \"x\"") == "\u00e9 \"x\"");
}
