#include "app/run_state.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "tests/support.h"

using namespace towers;

TEST_CASE("flags.txt holds flags and positions") {
  test::TemporaryFolder folder;
  app::RunState state;
  state.flagfile = "--seed=7\n--batch_size=128\n";
  state.position = {{"model.ckpt-0", 128}, {"model.ckpt-1000", 128128}};
  test::write_file(folder.path() / "flags.txt", app::to_text(state));
  const app::RunState read = app::read_run_state(folder.path());
  CHECK(read.flagfile == state.flagfile);
  CHECK(read.position == state.position);
  CHECK(read.flag("seed") == "7");
  CHECK_FALSE(read.flag("see").has_value());
}

TEST_CASE("a folder without flags.txt has no state") {
  test::TemporaryFolder folder;
  CHECK(app::read_run_state(folder.path()).flagfile.empty());
}

TEST_CASE("a malformed position is an error that names the file") {
  test::TemporaryFolder folder;
  test::write_file(folder.path() / "flags.txt", "# examples drawn at model.ckpt-3: 12x\n");
  CHECK_THROWS_WITH(app::read_run_state(folder.path()), Catch::Contains("flags.txt"));
  test::write_file(folder.path() / "flags.txt", "# examples drawn at model.ckpt-3: -16\n");
  CHECK_THROWS_WITH(app::read_run_state(folder.path()), Catch::Contains("flags.txt"));
}
