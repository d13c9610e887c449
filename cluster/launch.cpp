#include "cluster/launch.h"

#include <cstdlib>

namespace towers::cluster {
namespace {

const char* system_environment(const char* name) {
  return std::getenv(name);
}

}  // namespace

std::optional<Launch> find_launch(const char* (*environment)(const char* name)) {
  const auto number = [&](const char* name) {
    const char* text = environment(name);
    return text == nullptr ? 0 : std::atoi(text);
  };
  // Open MPI's mpirun, and PMI's (MPICH's mpirun, srun --mpi=pmi2).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const int processes = number(name); processes > 1) return Launch{processes, name};
    if (environment(name) != nullptr) return std::nullopt;
  }
  // PMIx (srun --mpi=pmix) does not tell the number; Slurm does, of the step that srun made.
  if (environment("PMIX_NAMESPACE") == nullptr) return std::nullopt;
  const int processes = number("SLURM_STEP_NUM_TASKS");
  if (processes == 1) return std::nullopt;
  return Launch{processes, "PMIX_NAMESPACE"};
}

std::optional<Launch> find_launch() {
  return find_launch(system_environment);
}

}  // namespace towers::cluster
