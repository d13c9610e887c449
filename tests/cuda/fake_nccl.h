#pragma once
// A library under NCCL's name that joins and sums nothing: it counts calls, and fails as it is
// told.

#include <nccl.h>

struct FakeNccl {
  int open_groups = 0, joined = 0, destroyed = 0, aborted = 0, sums = 0;
  int calls_outside = 0;  // of what needs a group
  // What the call with this number (of those that join, or that sum) returns, where not 0.
  int failing_call = 0;
  ncclResult_t failure = ncclSystemError;
  ncclResult_t async_error = ncclSuccess;
};
extern "C" FakeNccl fake_nccl;
