#include "cpu/fp64_plan.h"

#include <algorithm>
#include <utility>

#include "cpu/chain.h"
#include "cpu/fp64_layers.h"

namespace towers::cpu {

Fp64Plan::Fp64Plan(const Net& net, const VariableLayout& layout, int batch_size, bool training,
                   ThreadPool& pool)
    : layout_(layout),
      input_(net.input),
      classes_(static_cast<std::size_t>(net.classes)),
      batch_size_(batch_size),
      blocks_(std::min(16, batch_size)),  // each has sums of every variable, in doubles
      pool_(pool) {
  const std::size_t batch = static_cast<std::size_t>(batch_size);
  const std::vector<Extent> extents = output_extents(net);
  std::size_t largest = std::max(input_.size(), classes_);
  for (std::size_t l = 0; l + 1 < net.layers.size(); ++l) {
    LayerPlan plan{net.layers[l], l == 0 ? input_ : extents[l - 1], extents[l]};
    for (const Variable& v : layout_.variables()) {
      if (v.layer != l) continue;
      (plan.weights == nullptr ? plan.weights : plan.biases) = &v;
    }
    if (training && plan.weights != nullptr)
      plan.activations = memory_.floats(batch * plan.out.size());
    largest = std::max(largest, plan.out.size());
    layers_.push_back(plan);
  }
  scratch_.resize(static_cast<std::size_t>(pool.threads()));
  for (Scratch& s : scratch_) {
    s.outputs.push_back(memory_.allocate<double>(input_.size()));
    for (const LayerPlan& l : layers_) {
      s.outputs.push_back(memory_.allocate<double>(l.out.size()));
      const bool pools = std::holds_alternative<MaxPool>(l.layer.op);
      s.winners.push_back(memory_.allocate<std::int32_t>(pools ? l.out.size() : 0));
    }
    s.d_out = memory_.allocate<double>(largest);
    s.d_in = memory_.allocate<double>(largest);
  }
  logits_ = memory_.allocate<double>(batch * classes_);
  if (!training) return;
  losses_ = memory_.allocate<double>(batch);
  partials_ = memory_.allocate<double>(static_cast<std::size_t>(blocks_) * layout_.size());
}

const double* Fp64Plan::logits(const Batch& batch, bool keep_activations) {
  pool_.parallel_for(batch.size, [&](int task, int worker) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    const std::size_t image = static_cast<std::size_t>(task);
    const std::span<const double> logits = forward(batch.images + image * input_.size(), scratch);
    std::copy(logits.begin(), logits.end(), logits_.data() + image * classes_);
    if (keep_activations) keep(image, scratch);
  });
  return logits_.data();
}

double Fp64Plan::gradients(const Batch& batch, bool keep_activations, std::span<double> gradients,
                           const LayerDone& done) {
  pool_.parallel_for(blocks_, [&](int block, int worker) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    double* partial = partials_.data() + static_cast<std::size_t>(block) * layout_.size();
    std::fill_n(partial, layout_.size(), 0.0);
    const int last = batch_size_ * (block + 1) / blocks_;
    for (int i = batch_size_ * block / blocks_; i < last; ++i) {
      const std::size_t image = static_cast<std::size_t>(i);
      const std::span<const double> logits = forward(batch.images + image * input_.size(), scratch);
      losses_[image] = fp64::softmax_loss(classes_, logits.data(), batch.labels[i],
                                          1.0 / batch_size_, scratch.d_out.data());
      backward(scratch, partial);
      if (keep_activations) keep(image, scratch);
    }
  });
  sum_blocks(gradients);
  double loss = 0;
  for (const double l : losses_) loss += l / batch_size_;
  if (done)
    for (std::size_t l = layers_.size(); l-- > 0;) done(l, loss);
  return loss;
}

std::span<const double> Fp64Plan::forward(const float* image, Scratch& scratch) const {
  std::copy_n(image, input_.size(), scratch.outputs[0].data());
  for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, scratch);
  return scratch.outputs.back();
}

void Fp64Plan::forward_layer(std::size_t l, Scratch& scratch) const {
  const LayerPlan& p = layers_[l];
  const double* x = scratch.outputs[l].data();
  double* y = scratch.outputs[l + 1].data();
  const auto variable = [&](const Variable* v) { return variables_.data() + v->offset; };
  if (const auto* c = std::get_if<Convolution>(&p.layer.op))
    fp64::convolution(*c, p.in, p.out, x, variable(p.weights), variable(p.biases), y);
  else if (std::holds_alternative<Dense>(p.layer.op))
    fp64::dense(p.in.size(), p.out.size(), x, variable(p.weights), variable(p.biases), y);
  else if (const auto* pool = std::get_if<MaxPool>(&p.layer.op))
    fp64::max_pool(*pool, p.in, p.out, x, y, scratch.winners[l].data());
  else if (const auto* norm = std::get_if<LocalResponseNorm>(&p.layer.op))
    fp64::local_response_norm(*norm, p.in, x, y);
  if (has_relu(p.layer)) fp64::relu(p.out.size(), y);
}

// From the gradient of the logits in scratch.d_out on.
void Fp64Plan::backward(Scratch& scratch, double* gradients) const {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    backward_layer(l, scratch, l == 0 ? nullptr : scratch.d_in.data(), gradients);
    std::swap(scratch.d_out, scratch.d_in);
  }
}

void Fp64Plan::backward_layer(std::size_t l, Scratch& scratch, double* d_in,
                              double* gradients) const {
  const LayerPlan& p = layers_[l];
  const double* x = scratch.outputs[l].data();
  double* d_y = scratch.d_out.data();
  const auto variable = [&](const Variable* v) { return variables_.data() + v->offset; };
  const auto gradient = [&](const Variable* v) { return gradients + v->offset; };
  if (has_relu(p.layer)) fp64::relu_backward(p.out.size(), scratch.outputs[l + 1].data(), d_y);
  if (const auto* c = std::get_if<Convolution>(&p.layer.op)) {
    fp64::convolution_backward(*c, p.in, p.out, x, variable(p.weights), d_y, d_in,
                               gradient(p.weights), gradient(p.biases));
  } else if (std::holds_alternative<Dense>(p.layer.op)) {
    fp64::dense_backward(p.in.size(), p.out.size(), x, variable(p.weights), d_y, d_in,
                         gradient(p.weights), gradient(p.biases));
  } else if (d_in == nullptr) {
    return;  // nobody asks for the images' gradient
  } else if (std::holds_alternative<MaxPool>(p.layer.op)) {
    fp64::max_pool_backward(p.in, p.out, d_y, scratch.winners[l].data(), d_in);
  } else if (const auto* norm = std::get_if<LocalResponseNorm>(&p.layer.op)) {
    fp64::local_response_norm_backward(*norm, p.in, x, d_y, d_in);
  }
}

void Fp64Plan::keep(std::size_t image, const Scratch& scratch) {
  for (std::size_t l = 0; l < layers_.size(); ++l)
    if (!layers_[l].activations.empty())
      std::transform(scratch.outputs[l + 1].begin(), scratch.outputs[l + 1].end(),
                     layers_[l].activations.data() + image * layers_[l].out.size(),
                     [](double value) { return static_cast<float>(value); });
}

void Fp64Plan::sum_blocks(std::span<double> gradients) {
  const std::vector<Variable>& variables = layout_.variables();
  pool_.parallel_for(static_cast<int>(variables.size()), [&](int task, int) {
    const Variable& v = variables[static_cast<std::size_t>(task)];
    for (std::size_t i = v.offset; i < v.offset + v.size; ++i) {
      double sum = 0;
      for (int block = 0; block < blocks_; ++block)
        sum += partials_[static_cast<std::size_t>(block) * layout_.size() + i];
      gradients[i] = sum + v.weight_decay * variables_[i];
    }
  });
}

std::span<const float> Fp64Plan::activations(const std::string& layer) const {
  for (const LayerPlan& p : layers_)
    if (p.layer.name == layer) return p.activations;
  return {};
}

}  // namespace towers::cpu
