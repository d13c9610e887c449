#pragma once
// What a capture has recorded: work, and what each piece comes after.

#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda_host/world.h"

namespace towers::cuda_host {

struct Node {
  Work work;
  std::vector<std::size_t> after;
};

struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::vector<Node> nodes;
  bool invalid = false;
  bool ended = false;
};

// What must not happen while this thread, or with the global mode any, captures: refused, and the
// capture is lost. True where that was so.
bool spoils_capture(World& world);

}  // namespace towers::cuda_host

struct CUgraphNode_st {
  cudaGraph_t graph;
  std::size_t index;
};
struct CUgraph_st {
  std::vector<towers::cuda_host::Node> nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> names;  // of nodes that somebody asked for
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<towers::cuda_host::Node>> nodes;
  cudaGraph_t graph;  // may be gone
};
