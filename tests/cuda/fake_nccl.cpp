#include "tests/cuda/fake_nccl.h"

#include <cstring>

FakeNccl fake_nccl;

namespace {

ncclResult_t result_of(int call) {
  if (fake_nccl.open_groups == 0) ++fake_nccl.calls_outside;
  return call == fake_nccl.failing_call ? fake_nccl.failure : ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int, ncclUniqueId, int rank) {
  static char communicators[8];
  const ncclResult_t result = result_of(++fake_nccl.joined);
  if (result == ncclSuccess) *communicator = reinterpret_cast<ncclComm_t>(&communicators[rank]);
  return result;
}
ncclResult_t ncclCommDestroy(ncclComm_t) {
  ++fake_nccl.destroyed;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) {
  ++fake_nccl.aborted;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  *result = fake_nccl.async_error;
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) {
  return result_of(++fake_nccl.sums);
}
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return result_of(++fake_nccl.sums);
}
ncclResult_t ncclGroupStart() {
  ++fake_nccl.open_groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --fake_nccl.open_groups;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "what NCCL says";
}
