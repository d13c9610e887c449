#include "cpu/plan.h"

#include "cpu/chain.h"
#include "cpu/dense.h"
#include "cpu/softmax_loss.h"

namespace towers::cpu {
namespace {

bool is_spatial(const Layer& layer) {
  return !std::holds_alternative<Dense>(layer.op) && !std::holds_alternative<SoftmaxLoss>(layer.op);
}

}  // namespace

Plan::Plan(const Net& net, const VariableLayout& layout, const PlanSetting& plan,
           const Kernels& kernels, ThreadPool& pool, LayerClock* clock)
    : net_(net), extents_(output_extents(net)), batch_size_(plan.batch_size), kernels_(kernels) {
  const std::size_t loss = net.layers.size() - 1;
  const std::size_t batch = static_cast<std::size_t>(batch_size_);
  for (std::size_t begin = 0; begin < loss;) {
    LayerSetting setting{&kernels, &pool, &memory_, batch_size_, plan.arithmetic, plan.training};
    setting.clock = clock;
    setting.relu_input = begin > 0 && has_relu(net.layers[begin - 1]);
    setting.wants_input_gradient = plan.training && begin > 0;

    Step step;
    step.first_layer = step.last_layer = begin;
    const Layer& layer = net.layers[begin];
    if (is_spatial(layer)) {
      std::size_t end = begin + 1;
      while (end < loss && is_spatial(net.layers[end])) ++end;
      step.stage = std::make_unique<Chain>(net, layout, begin, end, setting);
      step.last_layer = end - 1;
    } else {
      const Extent input = begin == 0 ? net.input : extents_[begin - 1];
      step.stage = make_dense(layer, input.size(), layout.find(layer.name + "/weights"),
                              layout.find(layer.name + "/biases"), setting);
    }
    step.out_size = extents_[step.last_layer].size();
    step.out = memory_.floats(batch * step.out_size);
    if (plan.training) step.d_out = memory_.floats(batch * step.out_size);
    begin = step.last_layer + 1;
    steps_.push_back(std::move(step));
  }
  relu_logits_ = loss > 0 && has_relu(net.layers[loss - 1]);
}

void Plan::prepare(std::span<const float> variables) {
  variables_ = variables;
  for (Step& step : steps_) step.stage->prepare(variables);
}

const float* Plan::logits(const Batch& batch, bool keep_activations) {
  const float* in = batch.images;
  for (Step& step : steps_) {
    step.stage->forward(in, step.out.data(), batch.size, keep_activations);
    in = step.out.data();
  }
  return in;
}

double Plan::gradients(const Batch& batch, bool keep_activations, std::span<float> gradients,
                       const LayerDone& done) {
  const float* out = logits(batch, keep_activations);
  if (steps_.empty()) return 0;
  float* d_logits = steps_.back().d_out.data();
  const double loss = softmax_loss(out, batch.labels, batch_size_, net_.classes, d_logits);
  if (relu_logits_) kernels_.update.relu_backward(steps_.back().d_out.size(), out, d_logits);

  for (std::size_t s = steps_.size(); s-- > 0;) {
    const float* in = s == 0 ? batch.images : steps_[s - 1].out.data();
    float* d_in = s == 0 ? nullptr : steps_[s - 1].d_out.data();
    steps_[s].stage->backward(in, steps_[s].d_out.data(), d_in, variables_, gradients);
    if (done) done(steps_[s].first_layer, loss);
  }
  return loss;
}

std::span<const float> Plan::activations(const std::string& layer) const {
  for (const Step& step : steps_) {
    for (std::size_t l = step.first_layer; l <= step.last_layer; ++l) {
      if (net_.layers[l].name != layer) continue;
      const float* values = step.stage->activations(layer);
      if (values == nullptr) return {};
      return {values, extents_[l].size() * static_cast<std::size_t>(batch_size_)};
    }
  }
  return {};
}

}  // namespace towers::cpu
