#pragma once
// `towers train` as mpirun starts it, on this machine.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/quick_run.h"

namespace towers::test {

using Args = std::vector<std::string>;

// Why there are no tests with mpirun here; empty where there are.
inline std::string why_no_mpi() {
  namespace fs = std::filesystem;
  if (!fs::exists(fs::path(TOWERS_BINARY).parent_path() / "libtowers_mpi.so"))
    return "this build has no MPI module";
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/mpirun").c_str(), X_OK) == 0) return {};
  return "mpirun is not on the PATH";
}

// Open MPI asks root twice whether it is meant, and wants a processor for each rank.
inline ProcessOptions under_mpirun() {
  ProcessOptions options;
  options.program = "mpirun";
  options.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  return options;
}

// The arguments of an mpirun of `ranks` processes of `towers` with these arguments.
inline Args mpirun_args(int ranks, const Args& more) {
  return with({"--oversubscribe", "--bind-to", "none", "-np", std::to_string(ranks), TOWERS_BINARY},
              more);
}

inline ProcessResult mpirun(int ranks, const Args& args) {
  return run_towers(mpirun_args(ranks, args), under_mpirun());
}

// The process of a rank that this mpirun started; -1 without one.
inline pid_t rank_process(const Process& mpirun, int rank) {
  namespace fs = std::filesystem;
  const std::string parent = "PPid:\t" + std::to_string(mpirun.pid()) + "\n";
  const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc"))
    if (contains(read_file(entry.path() / "status"), parent) &&
        contains(read_file(entry.path() / "environ"), variable + '\0'))
      return static_cast<pid_t>(std::stol(entry.path().filename().string()));
  return -1;
}

}  // namespace towers::test
