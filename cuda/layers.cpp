#include "cuda/layers.h"

#include <algorithm>

#include "cuda/conv2d.h"
#include "cuda/engine_cache.h"
#include "cuda/matmul.h"

namespace towers::cuda {
namespace {

template <class T>
std::size_t rows_of(const LayerSetting<T>& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.output.height) *
         static_cast<std::size_t>(s.output.width);
}

void need(Workspace& workspace, std::size_t bytes) {
  workspace.bytes = std::max(workspace.bytes, bytes);
}

// Where the input has come through a relu: what has been written of its gradient passes that too.
template <class T>
void pass_input_relu(Stream& stream, const LayerSetting<T>& s, const T* input) {
  if (s.relu_input)
    relu_backward(stream, static_cast<std::size_t>(s.batch) * s.input.size(), input, s.d_input);
}

template <class T>
class ConvolutionLayer final : public LayerPlan<T> {
 public:
  ConvolutionLayer(const Convolution& convolution, const LayerSetting<T>& setting) : s_(setting) {
    conv_ = make_conv2d<T>({.shape = window_of(s_, convolution.kernel, convolution.stride),
                            .relu = convolution.relu,
                            .training = s_.training,
                            .wants_input_gradient = s_.d_input != nullptr,
                            .allow_tf32 = s_.allow_tf32,
                            .deterministic = s_.deterministic,
                            .direct = s_.direct,
                            .engines = s_.engines},
                           *s_.memory, *s_.stream);
    need(*s_.workspace, conv_->workspace());
    if (s_.training)
      need(*s_.workspace, column_sums_scratch(rows_of(s_), s_.output.channels) * sizeof(Wide<T>));
  }

  void forward(Stream& stream, const T* input) override {
    conv_->forward(stream, input, s_.weights, s_.biases, s_.output_values, s_.workspace->data);
  }
  void weight_gradient(Stream& stream, const T* input) override {
    conv_->weight_gradient(stream, input, s_.d_output, s_.d_weights, s_.workspace->data);
    column_sums(stream, rows_of(s_), s_.output.channels, s_.d_output, s_.d_biases,
                static_cast<Wide<T>*>(s_.workspace->data));
  }
  void input_gradient(Stream& stream, const T* input) override {
    conv_->input_gradient(stream, s_.d_output, s_.weights, s_.d_input, s_.workspace->data);
    pass_input_relu(stream, s_, input);
  }
  std::string engine() const override { return conv_->engine(); }
  std::string without_engine() const override { return conv_->without_engine(); }
  std::string refusals() const override { return conv_->refusals(); }

 private:
  LayerSetting<T> s_;
  std::unique_ptr<Conv2d<T>> conv_;
};

// Out: T, or the wide type for logits.
template <class T, class Out>
class DenseLayer final : public LayerPlan<T> {
 public:
  DenseLayer(const Dense& dense, const LayerSetting<T>& setting, const Out* biases, Out* output)
      : s_(setting), biases_(biases), output_(output) {
    matmul_ = make_matmul<T, Out>({.batch = s_.batch,
                                   .inputs = static_cast<int>(s_.input.size()),
                                   .outputs = dense.outputs,
                                   .relu = dense.relu,
                                   .training = s_.training,
                                   .wants_input_gradient = s_.d_input != nullptr,
                                   .allow_tf32 = s_.allow_tf32,
                                   .input_signs = s_.input_signs},
                                  *s_.memory, *s_.stream);
    need(*s_.workspace, matmul_->workspace());
  }

  void forward(Stream& stream, const T* input) override {
    matmul_->forward(stream, input, s_.weights, biases_, output_, s_.workspace->data);
  }
  void weight_gradient(Stream& stream, const T* input) override {
    matmul_->weight_gradient(stream, input, s_.d_output, s_.d_weights, s_.d_biases,
                             s_.workspace->data);
  }
  void input_gradient(Stream& stream, const T* input) override {
    matmul_->input_gradient(stream, s_.d_output, s_.weights, s_.d_input, s_.workspace->data);
    if (!matmul_->passes_input_relu()) pass_input_relu(stream, s_, input);
  }
  const void* signs() const override { return matmul_->signs(); }
  std::string engine() const override { return matmul_->engine(); }
  std::string refusals() const override { return matmul_->refusals(); }

 private:
  LayerSetting<T> s_;
  const Out* biases_;
  Out* output_;
  std::unique_ptr<Matmul<T, Out>> matmul_;
};

template <class T>
class MaxPoolLayer final : public LayerPlan<T> {
 public:
  MaxPoolLayer(const MaxPool& pool, const LayerSetting<T>& setting)
      : s_(setting),
        shape_(window_of(s_, pool.size, pool.stride)),
        winners_(allocate_winners(s_)) {}

  void forward(Stream& stream, const T* input) override {
    max_pool(stream, shape_, input, s_.output_values, winners_.data(), s_.relu_input);
  }
  void input_gradient(Stream& stream, const T*) override {
    max_pool_backward(stream, shape_, s_.d_output, winners_.data(), s_.d_input);
  }

 private:
  LayerSetting<T> s_;
  WindowShape shape_;
  std::span<std::uint8_t> winners_;
};

template <class T>
class NormLayer final : public LayerPlan<T> {
 public:
  NormLayer(const LocalResponseNorm& norm, const LayerSetting<T>& setting)
      : s_(setting), norm_(norm) {}

  void forward(Stream& stream, const T* input) override {
    local_response_norm(stream, norm_, rows_of(s_), s_.output.channels, input, s_.output_values);
  }
  void input_gradient(Stream& stream, const T* input) override {
    local_response_norm_backward(stream, norm_, rows_of(s_), s_.output.channels, input, s_.d_output,
                                 s_.relu_input, s_.d_input);
  }

 private:
  LayerSetting<T> s_;
  LocalResponseNorm norm_;
};

template <class T>
struct Maker {
  const LayerSetting<T>& setting;

  std::unique_ptr<LayerPlan<T>> operator()(const Convolution& convolution) const {
    return std::make_unique<ConvolutionLayer<T>>(convolution, setting);
  }
  std::unique_ptr<LayerPlan<T>> operator()(const Dense& dense) const {
    if (setting.logits != nullptr)
      return std::make_unique<DenseLayer<T, Wide<T>>>(dense, setting, setting.wide_biases,
                                                      setting.logits);
    return std::make_unique<DenseLayer<T, T>>(dense, setting, setting.biases,
                                              setting.output_values);
  }
  std::unique_ptr<LayerPlan<T>> operator()(const MaxPool& pool) const {
    return std::make_unique<MaxPoolLayer<T>>(pool, setting);
  }
  std::unique_ptr<LayerPlan<T>> operator()(const LocalResponseNorm& norm) const {
    return std::make_unique<NormLayer<T>>(norm, setting);
  }
  std::unique_ptr<LayerPlan<T>> operator()(const SoftmaxLoss&) const { return nullptr; }
};

}  // namespace

template <class T>
std::unique_ptr<LayerPlan<T>> make_layer(const Layer& layer, const LayerSetting<T>& setting) {
  std::unique_ptr<LayerPlan<T>> plan = std::visit(Maker<T>{setting}, layer.op);
  if (setting.engines == nullptr || !plan) return plan;
  if (!plan->engine().empty()) setting.engines->say(layer.name + " by " + plan->engine());
  const std::string refusals = plan->refusals();
  if (!refusals.empty()) setting.engines->say(layer.name + ", refused: " + refusals);
  if (const std::string passes = plan->without_engine(); !passes.empty())
    setting.engines->warn(
        "cuDNN has no engine that runs here in " + to_string(precision_of<T>()) + " for " +
        layer.name + " (" + passes +
        "): the module's own kernels take its place, many times slower (cuDNN says: " + refusals +
        ")");
  return plan;
}

#define TOWERS_INSTANTIATE(T) \
  template std::unique_ptr<LayerPlan<T>> make_layer(const Layer&, const LayerSetting<T>&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
