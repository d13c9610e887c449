#include "tests/reference/net.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <thread>

#include "tests/reference/layers.h"

namespace towers::reference {
namespace {

// A batch is cut into at most this many blocks, each summed on its own and the blocks added in
// order: the same sums for any number of threads.
constexpr int kBlocks = 16;

bool has_relu(const Layer& layer) {
  if (const auto* c = std::get_if<Convolution>(&layer.op)) return c->relu;
  if (const auto* d = std::get_if<Dense>(&layer.op)) return d->relu;
  return false;
}

// Walks one net over the examples of one batch.
class Walk {
 public:
  Walk(const Net& net, std::span<const double> variables, const Batch& batch, bool forced,
       Pass& pass)
      : net_(net),
        extents_(output_extents(net)),
        layout_(net),
        variables_(variables),
        batch_(batch),
        forced_(forced),
        pass_(pass) {
    variables_of_.resize(net.layers.size());
    contradictions_.assign(net.layers.size(), std::vector<Contradiction>(batch.labels.size()));
    for (const Variable& v : layout_.variables()) variables_of_[v.layer].push_back(&v);
  }

  // Returns the example's cross-entropy.
  double forward(std::size_t example);
  // Adds to the gradients (layout.size() values).
  void backward(std::size_t example, double* gradients);
  // After all examples.
  double contradiction() const;

 private:
  // The largest value decided wrongly, and the largest value, of one layer and example.
  struct Contradiction {
    double wrong = 0, largest = 0;
  };
  Extent input_extent(std::size_t layer) const {
    return layer == 0 ? net_.input : extents_[layer - 1];
  }
  const double* input(std::size_t layer, std::size_t example) const {
    const double* all = layer == 0 ? batch_.images.data() : pass_.outputs[layer - 1].data();
    return all + example * input_extent(layer).size();
  }
  template <class T>
  T* at(std::vector<std::vector<T>>& by_layer, std::size_t layer, std::size_t example) const {
    return by_layer[layer].data() + example * extents_[layer].size();
  }
  // Weights (0) or biases (1) of a layer within a flat buffer.
  template <class T>
  T* parameter(T* flat, std::size_t layer, std::size_t which) const {
    return flat + variables_of_[layer][which]->offset;
  }
  void relu_forward(std::size_t layer, std::size_t example);
  void max_pool_forward(std::size_t layer, const MaxPool& pool, std::size_t example);

  const Net& net_;
  const std::vector<Extent> extents_;
  const VariableLayout layout_;
  std::span<const double> variables_;
  const Batch& batch_;
  const bool forced_;
  Pass& pass_;
  std::vector<std::vector<const Variable*>> variables_of_;
  std::vector<std::vector<Contradiction>> contradictions_;
};

void Walk::relu_forward(std::size_t layer, std::size_t example) {
  double* y = at(pass_.outputs, layer, example);
  std::uint8_t* passed = at(pass_.decisions.relu, layer, example);
  Contradiction& contradiction = contradictions_[layer][example];
  for (std::size_t i = 0; i < extents_[layer].size(); ++i) {
    const std::uint8_t own = !(y[i] <= 0);  // a NaN passes
    if (!forced_) passed[i] = own;
    if (passed[i] != own) contradiction.wrong = std::max(contradiction.wrong, std::abs(y[i]));
    contradiction.largest = std::max(contradiction.largest, std::abs(y[i]));
    if (!passed[i]) y[i] = 0;
  }
}

void Walk::max_pool_forward(std::size_t layer, const MaxPool& pool, std::size_t example) {
  const double* x = input(layer, example);
  std::vector<std::int32_t> own(extents_[layer].size());
  max_pool_winners(pool, input_extent(layer), x, own.data());
  std::int32_t* winner = at(pass_.decisions.pool, layer, example);
  if (!forced_) std::copy(own.begin(), own.end(), winner);
  Contradiction& contradiction = contradictions_[layer][example];
  for (std::size_t i = 0; i < own.size(); ++i) {
    contradiction.wrong = std::max(contradiction.wrong, x[own[i]] - x[winner[i]]);
    contradiction.largest = std::max(contradiction.largest, std::abs(x[own[i]]));
  }
  gather(own.size(), winner, x, at(pass_.outputs, layer, example));
}

double Walk::contradiction() const {
  double worst = 0;
  for (const std::vector<Contradiction>& layer : contradictions_) {
    Contradiction all;
    for (const Contradiction& c : layer) {
      all.wrong = std::max(all.wrong, c.wrong);
      all.largest = std::max(all.largest, c.largest);
    }
    if (all.wrong > 0) worst = std::max(worst, all.wrong / all.largest);
  }
  return worst;
}

double Walk::forward(std::size_t example) {
  const double* flat = variables_.data();
  for (std::size_t l = 0; l < net_.layers.size(); ++l) {
    const Layer& layer = net_.layers[l];
    const Extent in = input_extent(l);
    const double* x = input(l, example);
    double* y = at(pass_.outputs, l, example);
    if (const auto* c = std::get_if<Convolution>(&layer.op)) {
      convolution_forward(*c, in, x, parameter(flat, l, 0), parameter(flat, l, 1), y);
    } else if (const auto* d = std::get_if<Dense>(&layer.op)) {
      dense_forward(in.size(), static_cast<std::size_t>(d->outputs), x, parameter(flat, l, 0),
                    parameter(flat, l, 1), y);
    } else if (const auto* p = std::get_if<MaxPool>(&layer.op)) {
      max_pool_forward(l, *p, example);
    } else if (const auto* n = std::get_if<LocalResponseNorm>(&layer.op)) {
      local_response_norm_forward(*n, in, x, y);
    } else {
      return softmax_cross_entropy(net_.classes, x, batch_.labels[example], y);
    }
    if (has_relu(layer)) relu_forward(l, example);
  }
  return 0;
}

void Walk::backward(std::size_t example, double* gradients) {
  const double* flat = variables_.data();
  const std::size_t last = net_.layers.size() - 1;
  // The loss layer's output is the gradient of one example's loss; the batch's loss is the mean.
  std::vector<double> dy(extents_[last].size());
  const double* dlogits = at(pass_.outputs, last, example);
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = dlogits[i] / batch_.size();
  for (std::size_t l = last; l-- > 0;) {
    const Layer& layer = net_.layers[l];
    const Extent in = input_extent(l);
    const double* x = input(l, example);
    std::vector<double> dx(in.size());
    if (has_relu(layer)) {
      const std::uint8_t* passed = at(pass_.decisions.relu, l, example);
      for (std::size_t i = 0; i < dy.size(); ++i)
        if (!passed[i]) dy[i] = 0;
    }
    if (const auto* c = std::get_if<Convolution>(&layer.op)) {
      convolution_backward(*c, in, x, parameter(flat, l, 0), dy.data(), dx.data(),
                           parameter(gradients, l, 0), parameter(gradients, l, 1));
    } else if (const auto* d = std::get_if<Dense>(&layer.op)) {
      dense_backward(in.size(), static_cast<std::size_t>(d->outputs), x, parameter(flat, l, 0),
                     dy.data(), dx.data(), parameter(gradients, l, 0), parameter(gradients, l, 1));
    } else if (std::holds_alternative<MaxPool>(layer.op)) {
      scatter_add(dy.size(), at(pass_.decisions.pool, l, example), dy.data(), dx.size(), dx.data());
    } else if (const auto* n = std::get_if<LocalResponseNorm>(&layer.op)) {
      local_response_norm_backward(*n, in, x, dy.data(), dx.data());
    }
    dy = std::move(dx);
  }
}

// Calls f(block) for block 0 .. blocks - 1, each once, on all cores.
template <class F>
void in_parallel(int blocks, const F& f) {
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int block = next++; block < blocks; block = next++) f(block);
  };
  const int threads =
      std::min(blocks, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

// Room for every layer's outputs and decisions.
void allocate(const Net& net, std::size_t size, Pass& pass) {
  const std::vector<Extent> extents = output_extents(net);
  pass.outputs.resize(extents.size());
  pass.decisions.relu.resize(extents.size());
  pass.decisions.pool.resize(extents.size());
  for (std::size_t l = 0; l < extents.size(); ++l) {
    pass.outputs[l].resize(size * extents[l].size());
    if (has_relu(net.layers[l])) pass.decisions.relu[l].resize(size * extents[l].size());
    if (std::holds_alternative<MaxPool>(net.layers[l].op))
      pass.decisions.pool[l].resize(size * extents[l].size());
  }
}

// Adds each weight decay's loss and gradient.
void add_weight_decay(const VariableLayout& layout, std::span<const double> variables, Pass& pass) {
  for (const Variable& v : layout.variables()) {
    if (v.weight_decay == 0) continue;
    double squares = 0;
    for (std::size_t i = v.offset; i < v.offset + v.size; ++i) {
      squares += variables[i] * variables[i];
      pass.gradients[i] += v.weight_decay * variables[i];
    }
    pass.losses.weight_losses.push_back(v.weight_decay * squares / 2);
    pass.losses.total += pass.losses.weight_losses.back();
  }
}

}  // namespace

Pass forward_backward(const Net& net, std::span<const double> variables, const Batch& batch,
                      const Decisions* forced) {
  const VariableLayout layout(net);
  Pass pass;
  allocate(net, static_cast<std::size_t>(batch.size()), pass);
  if (forced) pass.decisions = *forced;
  Walk walk(net, variables, batch, forced != nullptr, pass);

  const int blocks = std::min(kBlocks, batch.size());
  std::vector<std::vector<double>> gradients(static_cast<std::size_t>(blocks));
  std::vector<double> losses(static_cast<std::size_t>(batch.size()));
  in_parallel(blocks, [&](int block) {
    std::vector<double>& sum = gradients[static_cast<std::size_t>(block)];
    sum.resize(layout.size());
    const int last = batch.size() * (block + 1) / blocks;
    for (int e = batch.size() * block / blocks; e < last; ++e) {
      const std::size_t example = static_cast<std::size_t>(e);
      losses[example] = walk.forward(example);
      walk.backward(example, sum.data());
    }
  });

  pass.contradiction = walk.contradiction();
  pass.gradients.resize(layout.size());
  for (const std::vector<double>& sum : gradients)
    for (std::size_t i = 0; i < sum.size(); ++i) pass.gradients[i] += sum[i];
  for (double loss : losses) pass.losses.cross_entropy += loss / batch.size();
  pass.losses.total = pass.losses.cross_entropy;
  add_weight_decay(layout, variables, pass);
  return pass;
}

Decisions decisions_of(
    const Net& net, const Batch& batch,
    const std::function<std::span<const float>(const std::string& layer)>& output) {
  const std::vector<Extent> extents = output_extents(net);
  const std::size_t size = static_cast<std::size_t>(batch.size());
  Pass pass;
  allocate(net, size, pass);
  for (std::size_t l = 0; l + 1 < net.layers.size(); ++l) {
    const Layer& layer = net.layers[l];
    const Extent in = l == 0 ? net.input : extents[l - 1];
    std::vector<double>& y = pass.outputs[l];
    if (std::holds_alternative<Convolution>(layer.op) || std::holds_alternative<Dense>(layer.op)) {
      const std::span<const float> given = output(layer.name);
      y.assign(given.begin(), given.end());
      for (std::size_t i = 0; i < pass.decisions.relu[l].size(); ++i)
        pass.decisions.relu[l][i] = !(y[i] <= 0);
      continue;
    }
    for (std::size_t e = 0; e < size; ++e) {
      const double* x = (l == 0 ? batch.images : pass.outputs[l - 1]).data() + e * in.size();
      double* out = y.data() + e * extents[l].size();
      if (const auto* p = std::get_if<MaxPool>(&layer.op)) {
        std::int32_t* winner = pass.decisions.pool[l].data() + e * extents[l].size();
        max_pool_winners(*p, in, x, winner);
        gather(extents[l].size(), winner, x, out);
      } else if (const auto* n = std::get_if<LocalResponseNorm>(&layer.op)) {
        local_response_norm_forward(*n, in, x, out);
      }
    }
  }
  return pass.decisions;
}

void apply_gradients(std::span<const double> gradients, double learning_rate, double average_decay,
                     std::span<double> variables, std::span<double> averages) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    variables[i] -= learning_rate * gradients[i];
    averages[i] -= (1 - average_decay) * (averages[i] - variables[i]);
  }
}

}  // namespace towers::reference
