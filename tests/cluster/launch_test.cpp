// Which processes join others by MPI.

#include "cluster/launch.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace towers::cluster {
namespace {

std::map<std::string, std::string> g_environment;

std::optional<Launch> found(std::map<std::string, std::string> environment) {
  g_environment = std::move(environment);
  return find_launch([](const char* name) -> const char* {
    const auto entry = g_environment.find(name);
    return entry == g_environment.end() ? nullptr : entry->second.c_str();
  });
}

TEST_CASE("launchers of several processes are seen") {
  const auto open_mpi = found({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_NAMESPACE", "1"}});
  REQUIRE(open_mpi);
  CHECK(open_mpi->processes == 4);
  CHECK(open_mpi->variable == "OMPI_COMM_WORLD_SIZE");
  CHECK(found({{"PMI_SIZE", "2"}})->processes == 2);
  CHECK(found({{"PMIX_NAMESPACE", "slurm.1.0"}, {"SLURM_STEP_NUM_TASKS", "8"}})->processes == 8);
  CHECK(found({{"PMIX_NAMESPACE", "other"}})->processes == 0);
}

TEST_CASE("one process stays alone, and so does one that a batch script starts") {
  CHECK_FALSE(found({}));
  CHECK_FALSE(found({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "1"}}));
  CHECK_FALSE(found({{"PMI_SIZE", "1"}}));
  CHECK_FALSE(found({{"PMIX_NAMESPACE", "slurm.1.0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  CHECK_FALSE(found({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "3"}}));
}

}  // namespace
}  // namespace towers::cluster
