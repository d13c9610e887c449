// NCCL, loaded when the first sum over several GPUs is asked for: one GPU does without it.

#include "cuda/all_reduce.h"

#include <dlfcn.h>
#include <nccl.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace towers::cuda {
namespace {

#define TOWERS_TEXT_OF(x) #x
#define TOWERS_TEXT(x) TOWERS_TEXT_OF(x)
constexpr const char* kLibrary = "libnccl.so." TOWERS_TEXT(NCCL_MAJOR);
constexpr const char* kVersion = TOWERS_TEXT(NCCL_MAJOR) "." TOWERS_TEXT(NCCL_MINOR);

// The functions used, of the library that the system finds. Never unloaded.
struct Nccl {
  Nccl() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(TOWERS_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw Error(std::string("several GPUs need NCCL ") + kVersion + ", and " + kLibrary +
                  " is neither where the system's loader looks (LD_LIBRARY_PATH) nor at " +
                  TOWERS_NCCL_LIBRARY +
                  "; install it (libnccl2 of NVIDIA's repository, or PyPI's nvidia-nccl), or "
                  "train on one GPU, in one process, with --num_gpus=1");
    load(library, "ncclGetUniqueId", get_unique_id);
    load(library, "ncclCommInitRank", comm_init_rank);
    load(library, "ncclCommDestroy", comm_destroy);
    load(library, "ncclCommAbort", comm_abort);
    load(library, "ncclCommGetAsyncError", comm_get_async_error);
    load(library, "ncclAllReduce", all_reduce);
    load(library, "ncclAllGather", all_gather);
    load(library, "ncclGroupStart", group_start);
    load(library, "ncclGroupEnd", group_end);
    load(library, "ncclGetErrorString", error_string);
  }

  void check(ncclResult_t result, const char* what) const {
    if (result != ncclSuccess)
      throw Error(std::string("NCCL: ") + what + ": " + error_string(result) +
                  "; NCCL_DEBUG=INFO tells more");
  }

  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) comm_init_rank = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;

 private:
  template <class Function>
  static void load(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr)
      throw Error(std::string(kLibrary) + " lacks " + name + "; install NCCL " + kVersion +
                  " or newer");
  }
};

const Nccl& nccl() {
  static const Nccl library;
  return library;
}

template <class W>
class NcclAllReduce final : public AllReduce<W> {
 public:
  NcclAllReduce(const std::vector<int>& devices, const GpuGroup& group)
      : nccl_(nccl()), communicators_(devices.size()) {
    ncclUniqueId id;
    static_assert(sizeof id == sizeof group.id);
    std::memcpy(&id, group.id.data(), sizeof id);
    // A GPU that cannot be used is found here: a group that ends without it would wait for it.
    for (const int device : devices) const DeviceGuard usable(device);
    try {
      nccl_.check(in_group([&](std::size_t g) {
                    const DeviceGuard guard(devices[g]);
                    return nccl_.comm_init_rank(&communicators_[g], group.gpus, id,
                                                group.first + static_cast<int>(g));
                  }),
                  "the GPUs could not be joined");
    } catch (const Error&) {
      abandon();
      throw;
    }
  }
  ~NcclAllReduce() override {
    for (const ncclComm_t communicator : communicators_) nccl_.comm_destroy(communicator);
  }

  void check() override {
    require_usable();
    for (const ncclComm_t communicator : communicators_) {
      ncclResult_t result = ncclSuccess;
      nccl_.comm_get_async_error(communicator, &result);
      if (result != ncclSuccess && result != ncclInProgress) fail(result);
    }
  }

  void abandon() override {
    for (const ncclComm_t communicator : communicators_)
      if (communicator != nullptr) nccl_.comm_abort(communicator);
    communicators_.clear();
  }

  void sum(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
           std::span<Stream* const> streams) override {
    enqueue([&](std::size_t g) {
      return nccl_.all_reduce(send[g], receive[g], count, kType, ncclSum, communicators_[g],
                              streams[g]->get());
    });
  }

  void gather(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
              std::span<Stream* const> streams) override {
    enqueue([&](std::size_t g) {
      return nccl_.all_gather(send[g], receive[g], count, kType, communicators_[g],
                              streams[g]->get());
    });
  }

 private:
  static constexpr ncclDataType_t kType = std::is_same_v<W, double> ? ncclFloat64 : ncclFloat32;

  // One thread speaks for all GPUs of the process: without the group the first call would wait for
  // the others.
  template <class Call>
  ncclResult_t in_group(const Call& call) {
    nccl_.check(nccl_.group_start(), "a group could not be started");
    ncclResult_t result = ncclSuccess;
    try {
      for (std::size_t g = 0; g < communicators_.size() && result == ncclSuccess; ++g)
        result = call(g);
    } catch (const Error&) {
      nccl_.group_end();  // an open group would swallow all later calls
      throw;
    }
    const ncclResult_t end = nccl_.group_end();
    return result == ncclSuccess ? end : result;
  }

  template <class Call>
  void enqueue(const Call& call) {
    require_usable();
    if (const ncclResult_t result = in_group(call); result != ncclSuccess) fail(result);
  }

  void require_usable() const {
    if (communicators_.empty()) throw Error("NCCL: an earlier exchange of gradients failed");
  }

  [[noreturn]] void fail(ncclResult_t result) {
    abandon();
    throw Error(std::string("NCCL: gradients could not be exchanged: ") +
                nccl_.error_string(result) + "; NCCL_DEBUG=INFO tells more");
  }

  const Nccl& nccl_;
  std::vector<ncclComm_t> communicators_;
};

}  // namespace

void require_nccl() {
  nccl();
}

decltype(GpuGroup::id) make_group_id() {
  ncclUniqueId id;
  nccl().check(nccl().get_unique_id(&id), "no address to be found by");
  decltype(GpuGroup::id) bytes;
  static_assert(sizeof id == sizeof bytes);
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices,
                                              const GpuGroup& group) {
  return std::make_unique<NcclAllReduce<W>>(devices, group);
}
template std::unique_ptr<AllReduce<float>> make_all_reduce(const std::vector<int>&,
                                                           const GpuGroup&);
template std::unique_ptr<AllReduce<double>> make_all_reduce(const std::vector<int>&,
                                                            const GpuGroup&);

}  // namespace towers::cuda
