#include "cluster/mpi_loader.h"

#include <dlfcn.h>

#include <towers_mpi_stamp.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "cluster/mpi_module.h"
#include "core/error.h"

namespace towers::cluster {
namespace {

namespace fs = std::filesystem;

// One of them is empty, which is what the check finds redundant.
// NOLINTBEGIN(readability-redundant-string-init)
constexpr std::string_view kBuilt = TOWERS_MPI_BUILT;
constexpr std::string_view kNotBuilt = TOWERS_MPI_NOT_BUILT;
// NOLINTEND(readability-redundant-string-init)

std::vector<fs::path> module_places() {
  if (const char* file = std::getenv("TOWERS_MPI_MODULE")) return {file};
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  return {folder / "libtowers_mpi.so", folder.parent_path() / "lib/towers/libtowers_mpi.so"};
}

[[noreturn]] void fail(const Launch& launch, const std::string& why, const std::string& help) {
  throw Error("started as one of " +
              (launch.processes > 0 ? std::to_string(launch.processes) : std::string("several")) +
              " processes (" + launch.variable + "), but " + why + "; " + help);
}

void* load_module(const Launch& launch) {
  std::string places;
  for (const fs::path& file : module_places()) {
    places += (places.empty() ? "" : ", ") + file.string();
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    // Global, for MPI loads parts of itself that look for its names among everyone's.
    if (void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    const char* error = ::dlerror();
    fail(launch,
         std::string("the MPI module cannot be loaded: ") + (error != nullptr ? error : "unknown"),
         "install the MPI it was built with (" + std::string(kBuilt) +
             "), or build again with scripts/build");
  }
  fail(launch,
       "the MPI module is not there (" + places + ")" +
           (kBuilt.empty() ? ": " + std::string(kNotBuilt) : std::string()),
       "install libopenmpi-dev and openmpi-bin and run scripts/build, or start one process");
}

}  // namespace

std::unique_ptr<Collective> join_ranks(const Launch& launch) {
  void* module = load_module(launch);
  void* function = ::dlsym(module, kMpiModuleFunction);
  const std::string again = "build both again with scripts/build";
  if (function == nullptr) fail(launch, "the MPI module is damaged", again);
  Collective* ranks = nullptr;
  char error[512] = "";
  if (reinterpret_cast<JoinRanks>(function)(kMpiModuleStamp, &ranks, error, sizeof error) != 0)
    fail(launch, std::string("the MPI module does not work: ") + error, again);
  std::unique_ptr<Collective> joined(ranks);
  if (launch.processes > 0 && joined->ranks() != launch.processes)
    fail(launch, "MPI joined " + std::to_string(joined->ranks()) + " of them",
         "start them with the mpirun of the MPI that the module was built with (" +
             std::string(kBuilt) + "), or with srun --mpi=pmix");
  return joined;
}

std::string mpi_build() {
  return kBuilt.empty() ? "not built: " + std::string(kNotBuilt) : std::string(kBuilt);
}

}  // namespace towers::cluster
