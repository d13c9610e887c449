// A convolution's three passes, each by cuDNN where it has an engine, else by the direct kernels.

#include "cuda/conv2d.h"

#include <algorithm>

#include "cuda/cudnn_graph.h"

namespace towers::cuda {
namespace {

using enum ConvolutionTensor;

// For float64 there are the direct kernels alone: it is for checking, and they compute in it.
template <class T>
constexpr bool kByCudnn = !std::is_same_v<T, double>;

template <class T>
class Convolution2d final : public Conv2d<T> {
 public:
  Convolution2d(const Conv2dSetting& setting, DeviceMemory& memory, Stream& stream)
      : s_(setting), filter_size_(filter_values(setting.shape)) {
    if (!s_.direct && kByCudnn<T>) {
      const auto compile = [&](ConvolutionPass pass, const char* name) {
        std::string refusal;
        std::unique_ptr<CudnnGraph> graph =
            CudnnGraph::compile(s_, precision_of<T>(), pass, stream, refusal);
        if (!graph) refusals_ += (refusals_.empty() ? "" : "; ") + (name + (": " + refusal));
        return graph;
      };
      forward_ = compile(ConvolutionPass::forward_fused, "forward with biases");
      fused_ = forward_ != nullptr;
      if (!fused_) forward_ = compile(ConvolutionPass::forward, "forward");
      if (s_.training)
        weight_gradient_ = compile(ConvolutionPass::weight_gradient, "weight gradient");
      if (s_.wants_input_gradient)
        input_gradient_ = compile(ConvolutionPass::input_gradient, "input gradient");
    }
    if (forward_ || input_gradient_) filter_ = memory.allocate<T>(filter_size_);
    if (weight_gradient_) d_filter_ = memory.allocate<T>(filter_size_);
  }

  std::string engine() const override {
    const auto name = [](const std::unique_ptr<CudnnGraph>& graph) {
      return graph ? "cuDNN's " + graph->engine() : "the direct kernel";
    };
    std::string text = name(forward_) + (fused_ || !forward_ ? "" : " without biases");
    if (s_.training) text += ", weight gradient " + name(weight_gradient_);
    if (s_.wants_input_gradient) text += ", input gradient " + name(input_gradient_);
    return text;
  }

  std::string without_engine() const override {
    std::string passes;
    const auto add = [&](const char* pass, bool wanted, const std::unique_ptr<CudnnGraph>& graph) {
      if (wanted && !graph) passes += (passes.empty() ? "" : ", ") + std::string(pass);
    };
    const bool by_cudnn = !s_.direct && kByCudnn<T>;
    add("forward", by_cudnn, forward_);
    add("weight gradient", by_cudnn && s_.training, weight_gradient_);
    add("input gradient", by_cudnn && s_.wants_input_gradient, input_gradient_);
    return passes;
  }
  std::string refusals() const override { return refusals_; }

  std::size_t workspace() const override {
    std::size_t bytes = 0;
    for (const CudnnGraph* graph : {forward_.get(), weight_gradient_.get(), input_gradient_.get()})
      if (graph != nullptr) bytes = std::max(bytes, graph->workspace());
    return bytes;
  }

  void forward(Stream& stream, const T* x, const T* weights, const T* b, T* y,
               void* workspace) override {
    const WindowShape& s = s_.shape;
    if (!filter_.empty())
      hwio_to_krsc(stream, s.size, s.input.channels, s.output.channels, weights, filter_.data());
    if (!forward_) return direct_convolution(stream, s, x, weights, b, s_.relu, y);
    if (fused_) {
      forward_->run(stream, {{input, x}, {filter, filter_.data()}, {biases, b}, {output, y}},
                    workspace);
      return;
    }
    forward_->run(stream, {{input, x}, {filter, filter_.data()}, {output, y}}, workspace);
    const std::size_t channels = static_cast<std::size_t>(s.output.channels);
    add_biases(stream, static_cast<std::size_t>(s.batch) * s.output.size() / channels,
               s.output.channels, b, s_.relu, y);
  }

  void input_gradient(Stream& stream, const T* dy, const T* weights, T* dx,
                      void* workspace) override {
    if (!input_gradient_)
      return direct_convolution_input_gradient(stream, s_.shape, dy, weights, dx);
    input_gradient_->run(stream, {{output, dy}, {filter, filter_.data()}, {input, dx}}, workspace);
  }

  void weight_gradient(Stream& stream, const T* x, const T* dy, Wide<T>* d_weights,
                       void* workspace) override {
    if (!weight_gradient_)
      return direct_convolution_weight_gradient(stream, s_.shape, x, dy, d_weights);
    weight_gradient_->run(stream, {{output, dy}, {input, x}, {filter, d_filter_.data()}},
                          workspace);
    const WindowShape& s = s_.shape;
    krsc_to_hwio<T>(stream, s.size, s.input.channels, s.output.channels, d_filter_.data(),
                    d_weights);
  }

 private:
  static std::size_t filter_values(const WindowShape& s) {
    return static_cast<std::size_t>(s.size) * static_cast<std::size_t>(s.size) *
           static_cast<std::size_t>(s.input.channels) * static_cast<std::size_t>(s.output.channels);
  }

  Conv2dSetting s_;
  std::size_t filter_size_;
  bool fused_ = false;
  std::unique_ptr<CudnnGraph> forward_, input_gradient_, weight_gradient_;
  std::span<T> filter_, d_filter_;  // KRSC
  std::string refusals_;
};

}  // namespace

template <class T>
std::unique_ptr<Conv2d<T>> make_conv2d(const Conv2dSetting& setting, DeviceMemory& memory,
                                       Stream& stream) {
  return std::make_unique<Convolution2d<T>>(setting, memory, stream);
}

#define TOWERS_INSTANTIATE(T) \
  template std::unique_ptr<Conv2d<T>> make_conv2d(const Conv2dSetting&, DeviceMemory&, Stream&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
