// The text files of a run: `checkpoint` and flags.txt. What is read is written and read back.

#include "app/run_state.h"
#include "data/checkpoint.h"
#include "data/run_folder.h"
#include "tests/fuzz/target.h"

using namespace towers;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::filesystem::path& dir = fuzz::folder();
  fuzz::write_file(dir / "checkpoint", fuzz::view(bytes, size));
  fuzz::expect_errors_alone([&] {
    data::CheckpointState state = data::read_checkpoint_state(dir);
    if (state.latest.empty()) return;
    state.all = {state.latest};
    data::write_checkpoint_state(dir, state);
    const data::CheckpointState again = data::read_checkpoint_state(dir);
    if (again.latest.lexically_normal() != state.latest.lexically_normal())
      fuzz::fail(state.latest.string() + " became " + again.latest.string());
  });
  fuzz::write_file(dir / "flags.txt", fuzz::view(bytes, size));
  fuzz::expect_errors_alone([&] {
    const app::RunState state = app::read_run_state(dir);
    fuzz::write_file(dir / "flags.txt", app::to_text(state));
    const app::RunState again = app::read_run_state(dir);
    if (again.flagfile != state.flagfile || again.position != state.position)
      fuzz::fail("flags.txt reads back as another");
  });
  return 0;
}
