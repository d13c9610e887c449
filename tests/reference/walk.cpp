#include "tests/reference/walk.h"

#include <algorithm>
#include <cmath>

#include "tests/reference/layers.h"

namespace towers::reference {

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
    std::vector<double> room;
    const double* x = operand(l, input(l, example), in.size(), room);
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
    std::vector<double> room;
    const double* x = operand(l, input(l, example), in.size(), room);
    std::vector<double> dx(in.size());
    if (has_relu(layer)) {
      const std::uint8_t* passed = at(pass_.decisions.relu, l, example);
      for (std::size_t i = 0; i < dy.size(); ++i)
        if (!passed[i]) dy[i] = 0;
    }
    if (multiplies(l)) round(dy);
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

}  // namespace towers::reference
