// Stream capture and graphs.

#include "tests/cuda_host/capture.h"

#include <algorithm>
#include <memory>

#include "tests/cuda_host/api.h"

namespace towers::cuda_host {
namespace {

// Whether every node comes before one of `frontier`, or is one: what other streams did has been
// joined.
bool joined(const std::vector<Node>& nodes, std::vector<std::size_t> frontier) {
  std::vector<bool> reached(nodes.size());
  while (!frontier.empty()) {
    const std::size_t node = frontier.back();
    frontier.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    frontier.insert(frontier.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(reached.begin(), reached.end(), [](bool r) { return r; });
}

// A graph as one unit: its nodes in any order that they allow.
void run_graph(World& world, const std::vector<Node>& nodes) {
  std::vector<std::size_t> ready, missing(nodes.size());
  std::vector<std::vector<std::size_t>> before(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    missing[n] = nodes[n].after.size();
    if (missing[n] == 0) ready.push_back(n);
    for (const std::size_t a : nodes[n].after) before[a].push_back(n);
  }
  while (!ready.empty() && world.sticky == cudaSuccess) {
    std::swap(ready[world.random() % ready.size()], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    world.execute(nodes[node].work);
    for (const std::size_t n : before[node])
      if (--missing[n] == 0) ready.push_back(n);
  }
}

// Null where its graph is gone.
const Node* node_of(World& world, cudaGraphNode_t handle) {
  for (const void* graph : world.graphs)
    if (handle != nullptr && handle->graph == graph) return &handle->graph->nodes[handle->index];
  return nullptr;
}

}  // namespace

bool spoils_capture(World& world) {
  bool any = false;
  for (const auto& capture : world.captures) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeThreadLocal &&
        capture->thread != std::this_thread::get_id())
      continue;
    capture->invalid = any = true;
  }
  return any;
}

}  // namespace towers::cuda_host

using namespace towers::cuda_host;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (handle == nullptr) return world.returns(cudaErrorStreamCaptureUnsupported);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return world.returns(cudaErrorInvalidValue);
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = handle;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->frontier.clear();
  world->captures.insert(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Call world;
  *graph = nullptr;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return world.returns(cudaErrorInvalidValue);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return world.returns(cudaErrorStreamCaptureWrongThread);
  if (capture->origin != handle) return world.returns(cudaErrorStreamCaptureUnmatched);
  const bool whole = joined(capture->nodes, stream->frontier);
  for (const auto& s : world->streams)
    if (s->capture == capture) s->capture = nullptr;
  capture->ended = true;
  world->captures.erase(capture);
  if (capture->invalid) return world.returns(cudaErrorStreamCaptureInvalidated);
  if (!whole) return world.returns(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->nodes), {}};
  world->graphs.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Call world;
  const CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const Call world;
  if (world.refused()) return world.error();
  if (world->graphs.count(graph) == 0) return world.returns(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{std::make_shared<std::vector<Node>>(graph->nodes), graph};
  world->graphs.insert(*executable);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const Call world;
  if (world->graphs.count(graph) == 0) return world.returns(cudaErrorInvalidValue);
  for (std::size_t n = graph->names.size(); n < graph->nodes.size(); ++n)
    graph->names.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{graph, n}));
  if (nodes == nullptr) {
    *count = graph->names.size();
    return cudaSuccess;
  }
  *count = std::min(*count, graph->names.size());
  for (std::size_t n = 0; n < *count; ++n) nodes[n] = graph->names[n].get();
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  const Call world;
  const Node* node = node_of(*world, handle);
  if (node == nullptr) return world.returns(cudaErrorInvalidValue);
  const bool kernel = node->work.kernel != nullptr || node->work.vendor;
  *type = kernel               ? cudaGraphNodeTypeKernel
          : node->work.on_host ? cudaGraphNodeTypeHost
                               : cudaGraphNodeTypeMemcpy;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* parameters) {
  const Call world;
  const Node* node = node_of(*world, handle);
  if (node == nullptr || (node->work.kernel == nullptr && !node->work.vendor))
    return world.returns(cudaErrorInvalidValue);
  if (node->work.vendor || !world->settings.names_kernels)
    return world.returns(cudaErrorInvalidDeviceFunction);
  *parameters = {const_cast<void*>(node->work.kernel),
                 node->work.blocks,
                 node->work.threads,
                 0,
                 nullptr,
                 nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t handle,
                                             const cudaKernelNodeParams* parameters) {
  const Call world;
  if (world.refused()) return world.error();
  const Node* node = node_of(*world, handle);
  if (world->graphs.count(executable) == 0 || node == nullptr ||
      handle->graph != executable->graph || node->work.kernel != parameters->func ||
      parameters->kernelParams == nullptr || parameters->extra != nullptr)
    return world.returns(cudaErrorInvalidValue);
  // Launches that are under way keep the nodes that they have.
  auto nodes = std::make_shared<std::vector<Node>>(*executable->nodes);
  Work& work = (*nodes)[handle->index].work;
  work.run = work.bind(parameters->kernelParams);
  work.blocks = parameters->gridDim;
  work.threads = parameters->blockDim;
  executable->nodes = std::move(nodes);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  if (world->graphs.count(executable) == 0) return world.returns(cudaErrorInvalidValue);
  if (stream->capture != nullptr) return world.returns(cudaErrorNotSupported);
  // The nodes outlive the executable graph, which may be destroyed while it runs.
  Work work;
  work.run = [w = &*world, nodes = executable->nodes] { run_graph(*w, *nodes); };
  work.on_host = true;
  world->enqueue(*stream, std::move(work));
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Call world;
  if (world->graphs.erase(executable) == 0) return world.misuse("an executable graph");
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call world;
  if (world->graphs.erase(graph) == 0) return world.misuse("a graph");
  delete graph;
  return cudaSuccess;
}
