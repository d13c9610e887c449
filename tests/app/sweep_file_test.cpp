// The CSV file of a sweep.

#include "app/sweep_file.h"

#include <catch2/catch.hpp>

#include "app/csv_text.h"
#include "core/error.h"
#include "tests/support.h"

using namespace towers::app;
using namespace towers::test;
using OrderedJson = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

namespace {

const Cells kColumns{"what", "device", "threads", "rate"};

OrderedJson row(int threads) {
  return {{"what", "step"}, {"device", "A, \"B\""}, {"threads", threads}, {"rate", 1.5}};
}

}  // namespace

TEST_CASE("a line of CSV is split into the cells that it was made of") {
  for (const Cells& cells : {Cells{"a", "b"}, Cells{"", ""}, Cells{"a,b", "c\"d", "\"", ","},
                             Cells{"one"}, Cells{"", "x", ""}}) {
    INFO(csv_line(cells));
    CHECK(split_csv_line(csv_line(cells)) == cells);
  }
  CHECK(csv_line({"a b", "c,d", "e\"f"}) == R"(a b,"c,d","e""f")");
}

TEST_CASE("a sweep's file starts with a header and holds what was added") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  SweepFile file(path, kColumns);
  CHECK(read_file(path) == "what,device,threads,rate\n");
  const Cells settings{"what", "device", "threads"};
  CHECK_FALSE(file.holds(row(1), settings));
  file.add({row(1), row(2)});
  CHECK(read_file(path) ==
        "what,device,threads,rate\n"
        "step,\"A, \"\"B\"\"\",1,1.5\n"
        "step,\"A, \"\"B\"\"\",2,1.5\n");
  const SweepFile again(path, kColumns);
  for (const SweepFile* f : {&std::as_const(file), &again}) {
    CHECK(f->holds(row(1), settings));
    CHECK(f->holds(row(2), settings));
    CHECK_FALSE(f->holds(row(3), settings));
  }
}

TEST_CASE("no value is an empty cell") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  SweepFile file(path, {"a", "b"});
  file.add({{{"a", nullptr}, {"b", 1}}});
  CHECK(read_file(path) == "a,b\n,1\n");
  CHECK(SweepFile(path, {"a", "b"}).holds({{"a", nullptr}}, {"a"}));
  CHECK_FALSE(file.holds({{"a", 0}}, {"a"}));
}

TEST_CASE("a row that was cut off in writing is not there, and is removed") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  { SweepFile(path, kColumns).add({row(1), row(2)}); }
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 3));
  SweepFile file(path, kColumns);
  CHECK(file.holds(row(1), {"threads"}));
  CHECK_FALSE(file.holds(row(2), {"threads"}));
  file.add({row(2)});
  CHECK(read_file(path) == whole);
}

TEST_CASE("a file with other columns is refused and stays as it is") {
  TemporaryFolder folder;
  const auto path = folder.path() / "sweep.csv";
  for (const std::string content : {"what,device,threads\n", "notes", "\n", "what,device,thr"}) {
    INFO(content);
    write_file(path, content);
    CHECK_THROWS_WITH(SweepFile(path, kColumns),
                      Catch::Contains("sweep.csv") && Catch::Contains("give another file"));
    CHECK(read_file(path) == content);
  }
}

TEST_CASE("a file that cannot be written is an error at once, and no file is none") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(SweepFile(folder.path() / "none" / "sweep.csv", kColumns), towers::Error);
  CHECK_THROWS_AS(SweepFile("-", kColumns), towers::UsageError);
  SweepFile none("", kColumns);
  none.add({row(1)});
  CHECK_FALSE(none.holds(row(1), {"threads"}));
}
