#include "tests/app/run_check.h"

#include <algorithm>
#include <cstring>

#include "app/run_state.h"
#include "core/error.h"
#include "data/checkpoint.h"
#include "data/run_folder.h"
#include "tests/data/event_support.h"
#include "tests/support.h"

namespace towers::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTensors = 21;

// What `look` throws, as a line.
template <class Look>
std::string fault_of(const Look& look) {
  try {
    return look();
  } catch (const Error& error) {
    return std::string(error.what()) + "\n";
  }
}

std::string fault_of_checkpoint(const fs::path& prefix) {
  return fault_of([&]() -> std::string {
    const data::CheckpointReader reader(prefix);
    for (const data::TensorInfo& tensor : reader.tensors()) {
      std::vector<float> values(tensor.bytes / sizeof(float));
      reader.read(tensor.name, values);
    }
    return reader.tensors().size() == kTensors ? "" : prefix.string() + " lacks tensors\n";
  });
}

std::string fault_of_flags(const fs::path& dir, const fs::path& latest) {
  return fault_of([&]() -> std::string {
    const app::RunState state = app::read_run_state(dir);
    if (!state.flag("seed") || !state.flagfile.ends_with('\n')) return "flags.txt is not whole\n";
    return state.position.count(latest.filename().string())
               ? ""
               : "flags.txt does not know " + latest.filename().string() + "\n";
  });
}

// Behind the whole records there may be one that was torn, so shorter than it says itself.
std::string fault_of_events(const fs::path& path) {
  const std::string bytes = read_file(path);
  std::size_t end = 0;
  read_records(bytes, &end);
  const std::size_t torn = bytes.size() - end;
  std::uint64_t length = 0;
  if (torn >= sizeof length) std::memcpy(&length, bytes.data() + end, sizeof length);
  return torn < 16 + length ? "" : path.string() + ": a damaged record\n";
}

bool is_event_file(const fs::path& path) {
  return path.filename().string().starts_with("events.out.tfevents.");
}

}  // namespace

std::string faults_in(const fs::path& dir) {
  std::string faults;
  for (const fs::path& prefix : data::checkpoints_in(dir)) faults += fault_of_checkpoint(prefix);
  faults += fault_of([&]() -> std::string {
    const fs::path latest = data::read_checkpoint_state(dir).latest;
    if (latest.empty()) return "";
    return fault_of_checkpoint(latest) + fault_of_flags(dir, latest);
  });
  for (const auto& file : fs::directory_iterator(dir))
    if (is_event_file(file.path())) faults += fault_of_events(file.path());
  return faults;
}

std::string faults_after_end(const fs::path& dir, std::size_t max_to_keep) {
  std::string faults = faults_in(dir);
  const data::CheckpointState state = data::read_checkpoint_state(dir);
  if (state.all.size() > max_to_keep) faults += "more checkpoints than are kept\n";
  for (const auto& file : fs::directory_iterator(dir)) {
    const std::string name = file.path().filename().string();
    if (name == "checkpoint" || name == "flags.txt" || is_event_file(file.path())) continue;
    const bool listed = std::any_of(state.all.begin(), state.all.end(), [&](const fs::path& p) {
      const std::string prefix = p.filename().string();
      return name == prefix + ".index" || name == prefix + ".data-00000-of-00001";
    });
    if (!listed) faults += name + " is left over\n";
  }
  return faults;
}

std::int64_t global_step_of(const fs::path& dir) {
  const fs::path latest = data::read_checkpoint_state(dir).latest;
  return latest.empty() ? 0 : data::CheckpointReader(latest).read_integer("global_step");
}

}  // namespace towers::test
