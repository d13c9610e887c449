// The one function that libtowers_mpi.so exports. Nothing is thrown across it.

#include "cluster/mpi_module.h"

#include <towers_mpi_stamp.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "cluster/mpi_collective.h"

extern "C" __attribute__((visibility("default"))) int towers_mpi_join(const char* stamp,
                                                                      towers::Collective** ranks,
                                                                      char* error,
                                                                      std::size_t error_size) {
  using namespace towers::cluster;
  // Only with equal stamps do both sides know one layout of a Collective.
  if (std::strcmp(stamp, kMpiModuleStamp) != 0) {
    std::snprintf(error, error_size, "it is of another build (%s) than this program (%s)",
                  kMpiModuleStamp, stamp);
    return 1;
  }
  try {
    *ranks = join_over_mpi().release();
    return 0;
  } catch (const std::exception& caught) {
    std::snprintf(error, error_size, "%s", caught.what());
    return 1;
  }
}
