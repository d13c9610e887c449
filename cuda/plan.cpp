#include "cuda/plan.h"

#include <algorithm>

#include "cuda/host_values.h"
#include "cuda/kernels.h"

namespace towers::cuda {
namespace {

// A bucket is closed once it holds this much: less would cost more in latency than it hides.
constexpr std::size_t kBucketValues = std::size_t{1} << 18;  // 1 MiB

}  // namespace

template <class T>
Plan<T>::Plan(const Net& net, const VariableLayout& layout, const PlanOptions& options,
              const PlanMemory<T>& memory, Stream& stream)
    : net_(net),
      extents_(output_extents(net)),
      batch_size_(options.batch_size),
      memory_(memory),
      lowest_(layout.variables().empty() ? net.layers.size() : layout.variables()[0].layer),
      device_(stream.device()) {
  const bool training = memory.gradients != nullptr;
  const std::size_t batch = static_cast<std::size_t>(options.batch_size);
  const std::size_t loss = net.layers.size() - 1;
  const std::vector<Pairing> pairings = pairings_of(options);
  for (std::size_t l = 0; l < loss; ++l) {
    const std::size_t size = batch * extents_[l].size();
    const Pairing pairing = pairings[l];
    values_.push_back(pairing != Pairing::output_unwritten ? device_.allocate<T>(size).data()
                                                           : nullptr);
    gradients_.push_back(training && pairing == Pairing::none ? device_.allocate<T>(size).data()
                                                              : nullptr);
  }
  if constexpr (kNarrow<T>)
    logits_ = device_.allocate<Wide<T>>(batch * extents_[loss - 1].size()).data();
  else
    logits_ = values_.back();
  for (std::size_t l = 0; l < loss; ++l) {
    const LayerSetting<T> setting = layer_setting(l, layout, options, stream);
    if (pairings[l] == Pairing::none) {
      layers_.push_back(make_layer(net.layers[l], setting));
      continue;
    }
    const LayerSetting<T> next = layer_setting(l + 1, layout, options, stream);
    layers_.push_back(make_layer_pair(net.layers[l], setting, net.layers[l + 1], next));
    layers_.push_back(nullptr);
    ++l;
  }
  workspace_.data = device_.allocate<std::byte>(workspace_.bytes).data();
  if (training) {
    losses_ = device_.allocate<Wide<T>>(batch).data();
    plan_backward(layout, options.buckets);
  }
}

// Of each layer but the loss with the one after it.
template <class T>
std::vector<Pairing> Plan<T>::pairings_of(const PlanOptions& options) const {
  const std::size_t loss = net_.layers.size() - 1;
  std::vector<Pairing> pairings(loss, Pairing::none);
  for (std::size_t l = 0; l + 1 < loss; ++l) {
    const LayerSetting<T> first = shape_setting(l, options), second = shape_setting(l + 1, options);
    pairings[l] = pairing_of(net_.layers[l], first, net_.layers[l + 1], second);
    if (pairings[l] != Pairing::none) ++l;
  }
  return pairings;
}

template <class T>
LayerSetting<T> Plan<T>::shape_setting(std::size_t l, const PlanOptions& options) const {
  LayerSetting<T> setting;
  setting.batch = options.batch_size;
  setting.input = l == 0 ? net_.input : extents_[l - 1];
  setting.output = extents_[l];
  setting.training = memory_.gradients != nullptr;
  return setting;
}

template <class T>
LayerSetting<T> Plan<T>::layer_setting(std::size_t l, const VariableLayout& layout,
                                       const PlanOptions& options, Stream& stream) {
  LayerSetting<T> setting = shape_setting(l, options);
  setting.relu_input = l > 0 && has_relu(net_.layers[l - 1]);
  setting.allow_tf32 = options.allow_tf32;
  setting.deterministic = options.deterministic;
  setting.direct = options.direct;
  setting.engines = options.engines;
  setting.output_values = values_[l];
  if (l + 2 == net_.layers.size()) setting.logits = logits_;
  setting.d_output = gradients_[l];
  setting.d_input = l > lowest_ ? gradients_[l - 1] : nullptr;
  // Layers are made from the lowest up; the second one of a pair has none below it.
  if (l > 0 && l == layers_.size() && layers_.back() != nullptr)
    setting.input_signs = layers_.back()->signs();
  setting.memory = &device_;
  setting.workspace = &workspace_;
  setting.stream = &stream;
  for (const Variable& v : layout.variables()) {
    if (v.layer != l) continue;
    const bool biases = v.shape.size() == 1;
    (biases ? setting.biases : setting.weights) = memory_.working + v.offset;
    if (biases) setting.wide_biases = memory_.variables + v.offset;
    if (setting.training)
      (biases ? setting.d_biases : setting.d_weights) = memory_.gradients + v.offset;
  }
  return setting;
}

template <class T>
void Plan<T>::plan_backward(const VariableLayout& layout, bool buckets) {
  std::size_t end = layout.size();
  parts_.emplace_back();
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (layers_[l] == nullptr) continue;
    std::size_t begin = end;
    for (const Variable& v : layout.variables())
      if (v.layer == l) begin = std::min(begin, v.offset);
    if (begin < end) parts_.back().push_back({l, Work::weight_gradient});
    if (buckets && l > lowest_ && end - begin >= kBucketValues) {
      buckets_.push_back({begin, end});
      parts_.emplace_back();
      end = begin;
    }
    if (l > lowest_) parts_.back().push_back({l, Work::input_gradient});
  }
  buckets_.push_back({0, end});
}

template <class T>
void Plan<T>::forward(Stream& stream, const T* images) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (layers_[l] != nullptr) layers_[l]->forward(stream, input_of(l, images));
  }
  if constexpr (kNarrow<T>)
    if (!std::holds_alternative<Dense>(net_.layers[layers_.size() - 1].op))
      convert(stream, static_cast<std::size_t>(batch_size_) * extents_.back().size(),
              values_.back(), logits_);
}

template <class T>
void Plan<T>::backward(Stream& stream, const T* images, const std::int32_t* labels,
                       std::size_t part) {
  if (part == 0) {
    softmax_loss(stream, batch_size_, net_.classes, logits(), labels, memory_.loss_scale,
                 gradients_.back(), losses_, memory_.cross_entropy);
    if (has_relu(net_.layers[layers_.size() - 1]))
      relu_backward(stream, static_cast<std::size_t>(batch_size_) * extents_.back().size(),
                    logits(), gradients_.back());
  }
  for (const Task& task : parts_[part]) {
    const T* input = input_of(task.layer, images);
    if (task.work == Work::weight_gradient)
      layers_[task.layer]->weight_gradient(stream, input);
    else
      layers_[task.layer]->input_gradient(stream, input);
  }
}

template <class T>
bool Plan<T>::read_activations(Stream& stream, const std::string& layer,
                               std::vector<float>& out) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto& op = net_.layers[l].op;
    const bool dense = std::holds_alternative<Dense>(op);
    if (net_.layers[l].name != layer || !(dense || std::holds_alternative<Convolution>(op)))
      continue;
    out.resize(static_cast<std::size_t>(batch_size_) * extents_[l].size());
    if (dense && l + 1 == layers_.size())
      read_as_floats(stream, std::span<const Wide<T>>(logits_, out.size()), out);
    else
      read_as_floats(stream, std::span<const T>(values_[l], out.size()), out);
    return true;
  }
  return false;
}

#define TOWERS_INSTANTIATE(T) template class Plan<T>;
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
