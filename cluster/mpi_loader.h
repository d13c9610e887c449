#pragma once
// Finds and loads libtowers_mpi.so. Needs no MPI.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cluster/launch.h"
#include "core/collective.h"

namespace towers::cluster {

// Joins the other processes of `launch` on the calling thread, which is then the Collective's.
// Throws Error: what lacks, where it was looked for and what to install. The module is looked for
// where TOWERS_MPI_MODULE says (a file, for tests), else beside the binary and in the folder lib
// beside the binary's. It stays loaded until the process ends.
std::unique_ptr<Collective> join_ranks(const Launch& launch);

// What the module was built with, or why this build has none.
std::string mpi_build();

}  // namespace towers::cluster
