#pragma once
// What must be true of a train_dir whatever happened to the run that wrote it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace towers::test {

// All that is wrong with the files in `dir`, a line each, empty for nothing: `checkpoint` names a
// checkpoint of which every tensor can be read, and so can those of every other index that is
// there; flags.txt is whole and knows the latest checkpoint's position; event files hold whole
// records up to one torn record at most.
std::string faults_in(const std::filesystem::path& dir);

// The same, and nothing else lies there: no more than `max_to_keep` checkpoints, all of them
// listed, no temporary file and no data without an index. For a run that ended by itself.
std::string faults_after_end(const std::filesystem::path& dir, std::size_t max_to_keep);

// Number of updates in the latest checkpoint; 0 without one.
std::int64_t global_step_of(const std::filesystem::path& dir);

}  // namespace towers::test
