#pragma once
// A Collective over MPI; part of libtowers_mpi.so.

#include <memory>

#include "core/collective.h"

namespace towers::cluster {

// Starts MPI, which ends with the Collective, all on the calling thread. Throws Error.
std::unique_ptr<Collective> join_over_mpi();

}  // namespace towers::cluster
