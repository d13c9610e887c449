#pragma once
// Whether mpirun or srun started this process as one of several.

#include <optional>
#include <string>

namespace towers::cluster {

struct Launch {
  int processes = 0;     // 0: the launcher does not say
  std::string variable;  // of the environment, by which it is seen
};

// Nothing for one process: then nothing of MPI is loaded. Slurm's own variables alone say nothing:
// they are there in every batch script, and srun without --mpi starts processes that do not know
// each other.
// `environment` is getenv, or a test's.
std::optional<Launch> find_launch(const char* (*environment)(const char* name));
std::optional<Launch> find_launch();

// For messages: what to put before a command that is to start alone inside such a job.
inline constexpr const char* kAlone = "env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE -u PMIX_NAMESPACE";

}  // namespace towers::cluster
