// The choice among cuDNN's engines for a graph, and its runs.

#include "cuda/cudnn_graph.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "cuda/convolution_graph.h"
#include "cuda/engine_cache.h"
#include "cuda/engine_trials.h"

namespace towers::cuda {
namespace {

using Tensors = std::unordered_map<std::int64_t, void*>;

// Above this, an engine is chosen by measuring; below, launches cost more than the arithmetic.
constexpr double kMeasuredFlop = 1e8;
constexpr std::int64_t kLargestWorkspace = std::int64_t{256} << 20;

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(std::string(call) + ": " + cudnnGetErrorString(status));
}

// A message's first words in a line. cuDNN tells of every engine that it looked at, in lines and
// thousands of characters.
std::string beginning_of(std::string message) {
  constexpr std::size_t kMost = 300;
  if (message.size() > kMost) message = message.substr(0, kMost) + " ...";
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return message;
}

// One handle per device, for the life of the process: making one takes tenths of a second, and at
// exit the driver may be gone before it.
cudnnHandle_t handle_of(const Stream& stream) {
  static std::map<int, cudnnHandle_t> handles;
  cudnnHandle_t& handle = handles[stream.device()];
  if (handle == nullptr) check_cudnn(cudnnCreate(&handle), "cudnnCreate");
  check_cudnn(cudnnSetStream(handle, stream.get()), "cudnnSetStream");
  return handle;
}

// The GPU and the library, as far as they decide what is fast.
std::string gpu_of(const Stream& stream) {
  cudaDeviceProp properties;
  TOWERS_CUDA(cudaGetDeviceProperties(&properties, stream.device()));
  return std::string(properties.name) + " " + std::to_string(properties.major) + "." +
         std::to_string(properties.minor) + ", cuDNN " + std::to_string(cudnnGetVersion());
}

std::size_t workspace_of(const ConvolutionGraph& graph, std::int64_t engine) {
  return static_cast<std::size_t>(
      std::max<std::int64_t>(0, graph->get_workspace_size_plan_at_index(engine)));
}

// What the engines of a graph run on while they are tried: zeros.
class TrialMemory {
 public:
  TrialMemory(ConvolutionGraph& graph, Stream& stream)
      : graph_(graph), stream_(stream), memory_(stream.device()) {
    for (const ConvolutionTensor t : graph.used())
      tensors_[id_of(t)] = memory_.allocate<std::byte>(graph.shapes().of(t).most_bytes()).data();
  }

  // Told of the largest workspace first, it allocates once.
  void make_room_for(std::size_t workspace) {
    if (workspace > scratch_.size()) scratch_ = memory_.allocate<std::byte>(workspace);
  }
  // Enqueues; returns why it does not start.
  std::string run(std::int64_t engine) {
    make_room_for(workspace_of(graph_, engine));
    fe::error_t status =
        graph_->execute_plan_at_index(handle_of(stream_), tensors_, scratch_.data(), engine);
    return status.is_good() ? "" : beginning_of(status.get_message());
  }

 private:
  ConvolutionGraph& graph_;
  Stream& stream_;
  DeviceMemory memory_;
  Tensors tensors_;
  std::span<std::byte> scratch_;
};

class TimedGraph final : public CudnnGraph {
 public:
  TimedGraph(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass)
      : setting_(setting), precision_(precision), pass_(pass), graph_(setting, precision, pass) {}

  // False where no engine supports the graph.
  bool choose_engine(Stream& stream) {
    if (!describe_engines(handle_of(stream))) return false;
    TrialMemory memory(graph_, stream);
    EngineTrials trials(stream, [&](std::int64_t engine) { return memory.run(engine); });
    engine_ = choose_engine(stream, memory, trials);
    if (!trials.refusal().empty()) refusal_ = trials.refusal();
    return engine_ >= 0;
  }

  // What cuDNN said last of what it does not do.
  const std::string& refusal() const { return refusal_; }

  // Names of the engines for the GPU described.
  std::vector<std::string> engines_for(const std::string& device_properties) {
    std::vector<std::string> names;
    if (!describe_engines_for(device_properties)) return names;
    for (const std::int64_t e : build_engines()) {
      std::string name;
      if (graph_->get_plan_name_at_index(e, name).is_good()) names.push_back(name);
    }
    return names;
  }

  bool has_engine(const std::string& device_properties, const std::string& name) {
    return describe_engines_for(device_properties) && build_engine(name) >= 0;
  }

  std::string engine() const override {
    std::string name;
    return graph_->get_plan_name_at_index(engine_, name).is_good() ? name : "";
  }

  std::size_t workspace() const override { return workspace_of(graph_, engine_); }

  void run(Stream& stream, std::initializer_list<std::pair<ConvolutionTensor, const void*>> tensors,
           void* workspace) override {
    const DeviceGuard guard(stream.device());  // a handle is good on its own device alone
    Tensors map;
    for (const auto& [tensor, data] : tensors) map[id_of(tensor)] = const_cast<void*>(data);
    fe::error_t status = graph_->execute_plan_at_index(handle_of(stream), map, workspace, engine_);
    if (status.is_bad()) throw Error("cuDNN: a convolution failed: " + status.get_message());
  }

 private:
  bool good(fe::error_t status) {
    if (status.is_good()) return true;
    refusal_ = beginning_of(status.get_message());
    return false;
  }

  bool describe_engines_for(const std::string& device_properties) {
    auto properties = std::make_shared<fe::DeviceProperties>();
    fe::error_t status =
        properties->deserialize({device_properties.begin(), device_properties.end()});
    if (status.is_bad()) throw Error("cuDNN: a GPU's description: " + status.get_message());
    graph_->set_device_properties(properties);
    return describe_engines(nullptr);
  }

  // Lists the engines that may be used in the heuristics' order, without building them; false where
  // cuDNN has none. handle: null where the graph has a device's properties instead.
  bool describe_engines(cudnnHandle_t handle) {
    if (!good(graph_->validate()) || !good(graph_->build_operation_graph(handle)) ||
        !good(graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})))
      return false;
    refusal_ = "those that there are round more than is wanted, or want too much memory";
    std::vector<fe::NumericalNote_t> unwanted;
    const bool exact = precision_ == Precision::fp32 && !setting_.allow_tf32;
    if (exact) unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
    if (exact) {  // cost as many digits as TF32, or more
      unwanted.push_back(fe::NumericalNote_t::WINOGRAD_TILE_6x6);
      unwanted.push_back(fe::NumericalNote_t::WINOGRAD_TILE_13x13);
    }
    if (exact || precision_ != Precision::fp32) {
      unwanted.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
      unwanted.push_back(fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION);
    }
    if (setting_.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (!unwanted.empty()) graph_->deselect_numeric_notes(unwanted);
    graph_->deselect_workspace_greater_than(kLargestWorkspace);
    return true;
  }

  // Those that build. cuDNN names some twice.
  std::vector<std::int64_t> build_engines() {
    std::vector<std::int64_t> engines;
    std::set<std::string> seen;
    std::string name;
    for (std::int64_t e = 0; e < graph_->get_execution_plan_count(); ++e) {
      if (graph_->get_plan_name_at_index(e, name).is_good() && seen.count(name) > 0) continue;
      if (!good(graph_->build_plan_at_index(e))) continue;
      seen.insert(name);
      engines.push_back(e);
    }
    return engines;
  }

  // -1 where there is none.
  std::int64_t choose_engine(const Stream& stream, TrialMemory& memory, EngineTrials& trials) {
    // Deterministic: the first in the heuristics' order, whatever the clocks say today.
    if (setting_.deterministic || graph_.shapes().flop() < kMeasuredFlop)
      return first_that_runs(trials);
    if (setting_.engines == nullptr) return fastest(memory, trials);
    const std::string key = engine_key(gpu_of(stream), setting_, precision_, pass_);
    if (const std::optional<std::string> known = setting_.engines->find(key))
      if (const std::int64_t e = build_engine(*known); e >= 0 && trials.runs(e)) return e;
    const std::int64_t best = fastest(memory, trials);
    std::string name;
    if (best >= 0 && graph_->get_plan_name_at_index(best, name).is_good())
      setting_.engines->keep(key, name);
    return best;
  }

  // The first in the heuristics' order that builds, and runs here; -1 where there is none.
  std::int64_t first_that_runs(EngineTrials& trials) {
    for (std::int64_t e = 0; e < graph_->get_execution_plan_count(); ++e)
      if (good(graph_->build_plan_at_index(e)) && trials.runs(e)) return e;
    return -1;
  }

  // The engine of that name; -1 where it is not there or does not build.
  std::int64_t build_engine(const std::string& wanted) {
    std::string name;
    for (std::int64_t e = 0; e < graph_->get_execution_plan_count(); ++e)
      if (graph_->get_plan_name_at_index(e, name).is_good() && name == wanted)
        return good(graph_->build_plan_at_index(e)) ? e : -1;
    return -1;
  }

  // -1 where there is none, or none runs.
  std::int64_t fastest(TrialMemory& memory, EngineTrials& trials) {
    const std::vector<std::int64_t> engines = build_engines();
    std::size_t workspace = 0;
    for (const std::int64_t e : engines) workspace = std::max(workspace, workspace_of(graph_, e));
    memory.make_room_for(workspace);
    return trials.fastest(engines);
  }

  Conv2dSetting setting_;
  Precision precision_;
  ConvolutionPass pass_;
  ConvolutionGraph graph_;
  std::int64_t engine_ = -1;
  std::string refusal_;
};

}  // namespace

std::vector<std::string> engines_for(const Conv2dSetting& setting, Precision precision,
                                     ConvolutionPass pass, const std::string& device_properties,
                                     std::string* refusal) {
  TimedGraph graph(setting, precision, pass);
  std::vector<std::string> engines = graph.engines_for(device_properties);
  if (refusal != nullptr) *refusal = graph.refusal();
  return engines;
}

bool has_engine(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass,
                const std::string& device_properties, const std::string& name) {
  return TimedGraph(setting, precision, pass).has_engine(device_properties, name);
}

std::unique_ptr<CudnnGraph> CudnnGraph::compile(const Conv2dSetting& setting, Precision precision,
                                                ConvolutionPass pass, Stream& stream,
                                                std::string& refusal) {
  const DeviceGuard guard(stream.device());
  auto graph = std::make_unique<TimedGraph>(setting, precision, pass);
  if (graph->choose_engine(stream)) return graph;
  refusal = graph->refusal();
  return nullptr;
}

}  // namespace towers::cuda
