#pragma once
// train_dir/flags.txt: the flags of the run as a flagfile, and, as comments that a flagfile reader
// skips, the position in the example stream at each checkpoint that is kept. It is written before
// the `checkpoint` file names a new checkpoint, so a resumed run always finds its position.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace towers::app {

struct RunState {
  std::string flagfile;                           // "--name=value" lines
  std::map<std::string, std::uint64_t> position;  // by checkpoint name, "model.ckpt-1000"

  // Value of a flag in `flagfile`.
  std::optional<std::string> flag(const std::string& name) const;
};

std::string to_text(const RunState& state);

// Empty when the folder has no flags.txt (a checkpoint of TensorFlow's). Throws Error when it
// cannot be read or its position lines are malformed.
RunState read_run_state(const std::filesystem::path& train_dir);

// The command that goes on with the run in that folder, for a shell: with its flags, where it has a
// flags.txt.
std::string resume_command(const std::filesystem::path& train_dir);

}  // namespace towers::app
