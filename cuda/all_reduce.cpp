// NCCL, loaded when the first sum over several GPUs is asked for: one GPU does without it.

#include "cuda/all_reduce.h"

#include <dlfcn.h>
#include <nccl.h>

#include <string>
#include <thread>
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
                  "train on one GPU with --num_gpus=1");
    load(library, "ncclCommInitAll", comm_init_all);
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

  decltype(&ncclCommInitAll) comm_init_all = nullptr;
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
  explicit NcclAllReduce(const std::vector<int>& devices)
      : nccl_(nccl()), communicators_(devices.size()) {
    nccl_.check(nccl_.comm_init_all(communicators_.data(), static_cast<int>(devices.size()),
                                    devices.data()),
                "the GPUs could not be joined");
  }
  ~NcclAllReduce() override {
    for (const ncclComm_t communicator : communicators_) nccl_.comm_destroy(communicator);
  }

  // A GPU or link that fails leaves the other ranks' kernels waiting for ever, and with them a host
  // that synchronises; so the host looks for an error until the streams are done.
  void wait_for(std::span<Stream* const> streams) override {
    for (Stream* const stream : streams) {
      while (!stream->done()) {
        for (const ncclComm_t communicator : communicators_) {
          ncclResult_t result = ncclSuccess;
          nccl_.comm_get_async_error(communicator, &result);
          if (result != ncclSuccess && result != ncclInProgress) fail(result);
        }
        std::this_thread::yield();
      }
    }
  }

  void sum(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
           std::span<Stream* const> streams) override {
    for_each_rank([&](std::size_t r) {
      return nccl_.all_reduce(send[r], receive[r], count, kType, ncclSum, communicators_[r],
                              streams[r]->get());
    });
  }

  void gather(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
              std::span<Stream* const> streams) override {
    for_each_rank([&](std::size_t r) {
      return nccl_.all_gather(send[r], receive[r], count, kType, communicators_[r],
                              streams[r]->get());
    });
  }

 private:
  static constexpr ncclDataType_t kType = std::is_same_v<W, double> ? ncclFloat64 : ncclFloat32;

  // One thread speaks for all ranks: without the group the first call would wait for the others.
  template <class Call>
  void for_each_rank(const Call& call) {
    if (communicators_.empty()) throw Error("NCCL: an earlier exchange of gradients failed");
    nccl_.check(nccl_.group_start(), "a group could not be started");
    ncclResult_t result = ncclSuccess;
    for (std::size_t r = 0; r < communicators_.size() && result == ncclSuccess; ++r)
      result = call(r);
    const ncclResult_t end = nccl_.group_end();  // an open group would swallow all later calls
    if (result == ncclSuccess) result = end;
    if (result != ncclSuccess) fail(result);
  }

  // Ends what the ranks have under way, so that streams and hosts go on, and says why.
  [[noreturn]] void fail(ncclResult_t result) {
    for (const ncclComm_t communicator : communicators_) nccl_.comm_abort(communicator);
    communicators_.clear();
    throw Error(std::string("NCCL: gradients could not be exchanged: ") +
                nccl_.error_string(result) + "; NCCL_DEBUG=INFO tells more");
  }

  const Nccl& nccl_;
  std::vector<ncclComm_t> communicators_;
};

}  // namespace

template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices) {
  return std::make_unique<NcclAllReduce<W>>(devices);
}
template std::unique_ptr<AllReduce<float>> make_all_reduce(const std::vector<int>&);
template std::unique_ptr<AllReduce<double>> make_all_reduce(const std::vector<int>&);

}  // namespace towers::cuda
