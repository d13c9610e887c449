#include "cuda/cudnn_graph.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "cuda/engine_cache.h"

namespace towers::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensors = std::unordered_map<std::int64_t, void*>;

// Above this, an engine is chosen by measuring; below, launches cost more than the arithmetic.
constexpr double kMeasuredFlop = 1e8;
constexpr int kTimedRuns = 5;
constexpr std::int64_t kLargestWorkspace = std::int64_t{256} << 20;

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(std::string(call) + ": " + cudnnGetErrorString(status));
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

// Dimensions as cuDNN wants them, N C H W, with the strides of NHWC.
struct Shape {
  std::int64_t n, c, h, w;

  std::vector<std::int64_t> dimensions() const { return {n, c, h, w}; }
  std::vector<std::int64_t> strides() const { return {h * w * c, 1, w * c, c}; }
  // In any precision.
  std::size_t most_bytes() const { return static_cast<std::size_t>(n * c * h * w) * sizeof(float); }
};

struct Shapes {
  explicit Shapes(const WindowShape& s)
      : input{s.batch, s.input.channels, s.input.height, s.input.width},
        filter{s.output.channels, s.input.channels, s.size, s.size},
        biases{1, s.output.channels, 1, 1},
        output{s.batch, s.output.channels, s.output.height, s.output.width} {}

  const Shape& of(ConvolutionTensor tensor) const {
    switch (tensor) {
      case ConvolutionTensor::input:
        return input;
      case ConvolutionTensor::filter:
        return filter;
      case ConvolutionTensor::biases:
        return biases;
      case ConvolutionTensor::output:
        break;
    }
    return output;
  }
  double flop() const {
    return 2.0 * static_cast<double>(output.n * output.h * output.w) *
           static_cast<double>(filter.n * filter.c * filter.h * filter.w);
  }

  Shape input, filter, biases, output;
};

// Times what is enqueued between start and stop.
class Stopwatch {
 public:
  Stopwatch() {
    TOWERS_CUDA(cudaEventCreate(&start_));
    TOWERS_CUDA(cudaEventCreate(&stop_));
  }
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(Stream& stream) { TOWERS_CUDA(cudaEventRecord(start_, stream.get())); }
  float stop(Stream& stream) {  // milliseconds
    TOWERS_CUDA(cudaEventRecord(stop_, stream.get()));
    TOWERS_CUDA(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    TOWERS_CUDA(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

fe::DataType_t data_type(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return fe::DataType_t::BFLOAT16;
    case Precision::fp16:
      return fe::DataType_t::HALF;
    default:
      return fe::DataType_t::FLOAT;
  }
}

std::int64_t id_of(ConvolutionTensor tensor) {
  return 1 + static_cast<std::int64_t>(tensor);
}

const char* name_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward_fused:
      return "forward with biases";
    case ConvolutionPass::forward:
      return "forward";
    case ConvolutionPass::input_gradient:
      return "input gradient";
    case ConvolutionPass::weight_gradient:
      break;
  }
  return "weight gradient";
}

// The GPU and the library, as far as they decide what is fast.
std::string gpu_of(const Stream& stream) {
  cudaDeviceProp properties;
  TOWERS_CUDA(cudaGetDeviceProperties(&properties, stream.device()));
  return std::string(properties.name) + " " + std::to_string(properties.major) + "." +
         std::to_string(properties.minor) + ", cuDNN " + std::to_string(cudnnGetVersion());
}

class TimedGraph final : public CudnnGraph {
 public:
  TimedGraph(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass)
      : setting_(setting), precision_(precision), pass_(pass), shapes_(setting.shape) {
    graph_.set_io_data_type(data_type(precision))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    switch (pass) {
      case ConvolutionPass::forward_fused:
      case ConvolutionPass::forward:
        describe_forward(pass == ConvolutionPass::forward_fused);
        break;
      case ConvolutionPass::input_gradient:
        describe_input_gradient();
        break;
      case ConvolutionPass::weight_gradient:
        describe_weight_gradient();
        break;
    }
  }

  // False where no engine supports the graph.
  bool choose_engine(Stream& stream) {
    // Deterministic: the first in the heuristics' order, whatever the clocks say today.
    const bool measure = !setting_.deterministic && shapes_.flop() >= kMeasuredFlop;
    if (!describe_engines(handle_of(stream))) return false;
    if (!measure) {
      const std::vector<std::int64_t> candidates = build_engines(true);
      engine_ = candidates.empty() ? -1 : candidates[0];
      return engine_ >= 0;
    }
    const std::string key = engine_key(gpu_of(stream), setting_, precision_, pass_);
    if (setting_.engines != nullptr)
      if (const std::optional<std::string> known = setting_.engines->find(key)) {
        engine_ = build_engine(*known);
        if (engine_ >= 0) return true;
      }
    engine_ = fastest(build_engines(false), stream);
    std::string name;
    if (engine_ >= 0 && setting_.engines != nullptr &&
        graph_.get_plan_name_at_index(engine_, name).is_good())
      setting_.engines->keep(key, name);
    return engine_ >= 0;
  }

  // Names of the engines for the GPU described.
  std::vector<std::string> engines_for(const std::string& device_properties) {
    std::vector<std::string> names;
    if (!describe_engines_for(device_properties)) return names;
    for (const std::int64_t e : build_engines(false)) {
      std::string name;
      if (graph_.get_plan_name_at_index(e, name).is_good()) names.push_back(name);
    }
    return names;
  }

  bool has_engine(const std::string& device_properties, const std::string& name) {
    return describe_engines_for(device_properties) && build_engine(name) >= 0;
  }

  std::size_t workspace() const override {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(0, graph_.get_workspace_size_plan_at_index(engine_)));
  }

  void run(Stream& stream, std::initializer_list<std::pair<ConvolutionTensor, const void*>> tensors,
           void* workspace) override {
    const DeviceGuard guard(stream.device());  // a handle is good on its own device alone
    Tensors map;
    for (const auto& [tensor, data] : tensors) map[id_of(tensor)] = const_cast<void*>(data);
    fe::error_t status = graph_.execute_plan_at_index(handle_of(stream), map, workspace, engine_);
    if (status.is_bad()) throw Error("cuDNN: a convolution failed: " + status.get_message());
  }

 private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  Tensor tensor(ConvolutionTensor which) {
    used_.push_back(which);
    const Shape& shape = shapes_.of(which);
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(id_of(which))
                             .set_dim(shape.dimensions())
                             .set_stride(shape.strides()));
  }

  void set_result(const Tensor& result, ConvolutionTensor which) {
    used_.push_back(which);
    const Shape& shape = shapes_.of(which);
    result->set_output(true)
        .set_uid(id_of(which))
        .set_dim(shape.dimensions())
        .set_stride(shape.strides());
  }

  bool describe_engines_for(const std::string& device_properties) {
    auto properties = std::make_shared<fe::DeviceProperties>();
    fe::error_t status =
        properties->deserialize({device_properties.begin(), device_properties.end()});
    if (status.is_bad()) throw Error("cuDNN: a GPU's description: " + status.get_message());
    graph_.set_device_properties(properties);
    return describe_engines(nullptr);
  }

  // Lists the engines that may be used in the heuristics' order, without building them; false where
  // cuDNN has none. handle: null where the graph has a device's properties instead.
  bool describe_engines(cudnnHandle_t handle) {
    if (graph_.validate().is_bad() || graph_.build_operation_graph(handle).is_bad() ||
        graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
      return false;
    std::vector<fe::NumericalNote_t> unwanted;
    const bool exact = precision_ == Precision::fp32 && !setting_.allow_tf32;
    if (exact) unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
    if (exact || precision_ != Precision::fp32) {
      unwanted.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
      unwanted.push_back(fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION);
    }
    if (setting_.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (!unwanted.empty()) graph_.deselect_numeric_notes(unwanted);
    graph_.deselect_workspace_greater_than(kLargestWorkspace);
    return true;
  }

  // Those that build, the first alone or all of them. cuDNN names some twice.
  std::vector<std::int64_t> build_engines(bool first_alone) {
    std::vector<std::int64_t> engines;
    std::set<std::string> seen;
    std::string name;
    for (std::int64_t e = 0; e < graph_.get_execution_plan_count(); ++e) {
      if (graph_.get_plan_name_at_index(e, name).is_good() && seen.count(name) > 0) continue;
      if (graph_.build_plan_at_index(e).is_bad()) continue;
      seen.insert(name);
      engines.push_back(e);
      if (first_alone) break;
    }
    return engines;
  }

  // The engine of that name; -1 where it is not there or does not build.
  std::int64_t build_engine(const std::string& wanted) {
    std::string name;
    for (std::int64_t e = 0; e < graph_.get_execution_plan_count(); ++e)
      if (graph_.get_plan_name_at_index(e, name).is_good() && name == wanted)
        return graph_.build_plan_at_index(e).is_good() ? e : -1;
    return -1;
  }

  template <class Attributes>
  Attributes window() const {
    const WindowShape& s = setting_.shape;
    const auto after = [&](int input, int output, int before) -> std::int64_t {
      return std::max(0, (output - 1) * s.stride + s.size - input - before);
    };
    return Attributes()
        .set_pre_padding({s.pad_top, s.pad_left})
        .set_post_padding({after(s.input.height, s.output.height, s.pad_top),
                           after(s.input.width, s.output.width, s.pad_left)})
        .set_stride({s.stride, s.stride})
        .set_dilation({1, 1});
  }

  void describe_forward(bool fused) {
    Tensor y =
        graph_.conv_fprop(tensor(ConvolutionTensor::input), tensor(ConvolutionTensor::filter),
                          window<fe::graph::Conv_fprop_attributes>());
    if (fused) {
      y = graph_.pointwise(y, tensor(ConvolutionTensor::biases),
                           fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
      if (setting_.relu)
        y = graph_.pointwise(
            y, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
    }
    set_result(y, ConvolutionTensor::output);
  }

  void describe_input_gradient() {
    set_result(
        graph_.conv_dgrad(tensor(ConvolutionTensor::output), tensor(ConvolutionTensor::filter),
                          window<fe::graph::Conv_dgrad_attributes>()),
        ConvolutionTensor::input);
  }

  void describe_weight_gradient() {
    set_result(
        graph_.conv_wgrad(tensor(ConvolutionTensor::output), tensor(ConvolutionTensor::input),
                          window<fe::graph::Conv_wgrad_attributes>()),
        ConvolutionTensor::filter);
  }

  // Times every candidate on zeros; -1 where there is none, or none runs.
  std::int64_t fastest(const std::vector<std::int64_t>& candidates, Stream& stream) {
    if (candidates.size() <= 1) return candidates.empty() ? -1 : candidates[0];
    DeviceMemory memory(stream.device());
    Tensors tensors;
    for (const ConvolutionTensor t : used_)
      tensors[id_of(t)] = memory.allocate<std::byte>(shapes_.of(t).most_bytes()).data();
    std::int64_t bytes = 0;
    for (const std::int64_t e : candidates)
      bytes = std::max(bytes, graph_.get_workspace_size_plan_at_index(e));
    void* scratch = memory.allocate<std::byte>(static_cast<std::size_t>(bytes)).data();

    std::int64_t best = -1;
    float best_time = std::numeric_limits<float>::max();
    for (const std::int64_t e : candidates) {
      const float time = time_of(e, tensors, scratch, stream);
      if (time < best_time) best = e, best_time = time;
    }
    return best;
  }

  // The shortest of a few runs, in milliseconds.
  float time_of(std::int64_t engine, Tensors& tensors, void* scratch, Stream& stream) {
    Stopwatch watch;
    float best = std::numeric_limits<float>::max();
    for (int r = 0; r <= kTimedRuns; ++r) {
      watch.start(stream);
      if (graph_.execute_plan_at_index(handle_of(stream), tensors, scratch, engine).is_bad())
        return std::numeric_limits<float>::max();
      const float time = watch.stop(stream);
      if (r > 0) best = std::min(best, time);  // the first one loads code
    }
    return best;
  }

  Conv2dSetting setting_;
  Precision precision_;
  ConvolutionPass pass_;
  Shapes shapes_;
  fe::graph::Graph graph_;
  std::vector<ConvolutionTensor> used_;
  std::int64_t engine_ = -1;
};

}  // namespace

std::vector<std::string> engines_for(const Conv2dSetting& setting, Precision precision,
                                     ConvolutionPass pass, const std::string& device_properties) {
  return TimedGraph(setting, precision, pass).engines_for(device_properties);
}

bool has_engine(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass,
                const std::string& device_properties, const std::string& name) {
  return TimedGraph(setting, precision, pass).has_engine(device_properties, name);
}

std::string engine_key(const std::string& gpu, const Conv2dSetting& setting, Precision precision,
                       ConvolutionPass pass) {
  const WindowShape& s = setting.shape;
  const auto extent = [](const Extent& e) {
    return std::to_string(e.height) + "x" + std::to_string(e.width) + "x" +
           std::to_string(e.channels);
  };
  std::string key = gpu + ", " + name_of(pass);
  if (pass == ConvolutionPass::forward_fused && setting.relu) key += " with relu";
  key += ", " + to_string(precision);
  if (precision == Precision::fp32 && setting.allow_tf32) key += " as tf32";
  return key + ", " + std::to_string(s.batch) + " x " + extent(s.input) + " to " +
         extent(s.output) + ", window " + std::to_string(s.size) + " by " +
         std::to_string(s.stride) + " from " + std::to_string(-s.pad_top) + " " +
         std::to_string(-s.pad_left);
}

std::unique_ptr<CudnnGraph> CudnnGraph::compile(const Conv2dSetting& setting, Precision precision,
                                                ConvolutionPass pass, Stream& stream) {
  const DeviceGuard guard(stream.device());
  auto graph = std::make_unique<TimedGraph>(setting, precision, pass);
  if (!graph->choose_engine(stream)) return nullptr;
  return graph;
}

}  // namespace towers::cuda
