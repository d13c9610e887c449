#pragma once
// The boundary of libtowers_mpi.so: all that the binary knows of it. The module is loaded at run
// time (cluster/mpi_loader.h), so that a run on one process needs no MPI.

#include <cstddef>

#include "core/collective.h"

namespace towers::cluster {

// What the module exports, as kMpiModuleFunction: starts MPI on the calling thread, which makes all
// calls of the Collective and ends it. `stamp` is the caller's kMpiModuleStamp
// (cluster/mpi_stamp.h.in): a module of another build is refused. Returns 0 and the Collective,
// which the caller deletes; or 1 and a line for the user in `error`, cut to error_size.
using JoinRanks = int (*)(const char* stamp, Collective** ranks, char* error,
                          std::size_t error_size);

inline constexpr const char* kMpiModuleFunction = "towers_mpi_join";

}  // namespace towers::cluster
