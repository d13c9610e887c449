#include "cuda/plan.h"

#include <algorithm>

#include "cuda/kernels.h"

namespace towers::cuda {
namespace {

// A bucket is closed once it holds this much: less would cost more in latency than it hides.
constexpr std::size_t kBucketValues = std::size_t{1} << 18;  // 1 MiB

}  // namespace

Plan::Plan(const Net& net, const VariableLayout& layout, const PlanOptions& options,
           const PlanMemory& memory, Stream& stream)
    : net_(net),
      extents_(output_extents(net)),
      batch_size_(options.batch_size),
      memory_(memory),
      device_(stream.device()),
      lowest_(layout.variables().empty() ? net.layers.size() : layout.variables()[0].layer) {
  const bool training = memory.gradients != nullptr;
  const std::size_t batch = static_cast<std::size_t>(options.batch_size);
  const std::size_t loss = net.layers.size() - 1;
  for (std::size_t l = 0; l < loss; ++l) {
    values_.push_back(device_.allocate<float>(batch * extents_[l].size()).data());
    gradients_.push_back(training ? device_.allocate<float>(batch * extents_[l].size()).data()
                                  : nullptr);
  }
  for (std::size_t l = 0; l < loss; ++l) {
    const LayerSetting setting = layer_setting(l, layout, options, stream);
    if (l + 1 < loss) {
      const LayerSetting next = layer_setting(l + 1, layout, options, stream);
      if (auto pair = make_layer_pair(net.layers[l], setting, net.layers[l + 1], next)) {
        layers_.push_back(std::move(pair));
        layers_.push_back(nullptr);
        ++l;
        continue;
      }
    }
    layers_.push_back(make_layer(net.layers[l], setting));
  }
  workspace_.data = device_.allocate<std::byte>(workspace_.bytes).data();
  if (training) {
    losses_ = device_.allocate<float>(batch).data();
    plan_backward(layout, options.buckets);
  }
}

LayerSetting Plan::layer_setting(std::size_t l, const VariableLayout& layout,
                                 const PlanOptions& options, Stream& stream) {
  LayerSetting setting;
  setting.batch = options.batch_size;
  setting.input = l == 0 ? net_.input : extents_[l - 1];
  setting.output = extents_[l];
  setting.training = memory_.gradients != nullptr;
  setting.relu_input = l > 0 && has_relu(net_.layers[l - 1]);
  setting.allow_tf32 = options.allow_tf32;
  setting.deterministic = options.deterministic;
  setting.direct = options.direct;
  setting.output_values = values_[l];
  setting.d_output = gradients_[l];
  setting.d_input = l > lowest_ ? gradients_[l - 1] : nullptr;
  setting.memory = &device_;
  setting.workspace = &workspace_;
  setting.stream = &stream;
  for (const Variable& v : layout.variables()) {
    if (v.layer != l) continue;
    const bool biases = v.shape.size() == 1;
    (biases ? setting.biases : setting.weights) = memory_.variables + v.offset;
    if (setting.training)
      (biases ? setting.d_biases : setting.d_weights) = memory_.gradients + v.offset;
  }
  return setting;
}

void Plan::plan_backward(const VariableLayout& layout, bool buckets) {
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

void Plan::forward(Stream& stream, const float* images) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (layers_[l] != nullptr) layers_[l]->forward(stream, input_of(l, images));
  }
}

void Plan::backward(Stream& stream, const float* images, const std::int32_t* labels,
                    std::size_t part) {
  if (part == 0) {
    softmax_loss(stream, batch_size_, net_.classes, logits(), labels, gradients_.back(), losses_,
                 memory_.cross_entropy);
    if (has_relu(net_.layers[layers_.size() - 1]))
      relu_backward(stream, static_cast<std::size_t>(batch_size_) * extents_.back().size(),
                    logits(), gradients_.back());
  }
  for (const Task& task : parts_[part]) {
    const float* input = input_of(task.layer, images);
    if (task.work == Work::weight_gradient)
      layers_[task.layer]->weight_gradient(stream, input);
    else
      layers_[task.layer]->input_gradient(stream, input);
  }
}

std::span<const float> Plan::activations(const std::string& layer) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto& op = net_.layers[l].op;
    if (net_.layers[l].name == layer &&
        (std::holds_alternative<Convolution>(op) || std::holds_alternative<Dense>(op)))
      return {values_[l], static_cast<std::size_t>(batch_size_) * extents_[l].size()};
  }
  return {};
}

}  // namespace towers::cuda
