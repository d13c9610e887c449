#pragma once
// One net walked forward and backward over the examples of one batch; what net.cpp is made of.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/reference/net.h"

namespace towers::reference {

// Room for every layer's outputs and decisions.
void allocate(const Net& net, std::size_t size, Pass& pass);

// Different examples may be walked by different threads at once.
class Walk {
 public:
  Walk(const Net& net, std::span<const double> variables, const Batch& batch, bool forced,
       Operands operands, Pass& pass)
      : net_(net),
        extents_(output_extents(net)),
        layout_(net),
        variables_(variables.begin(), variables.end()),
        batch_(batch),
        forced_(forced),
        rounds_(operands == Operands::bf16),
        pass_(pass) {
    variables_of_.resize(net.layers.size());
    contradictions_.assign(net.layers.size(), std::vector<Contradiction>(batch.labels.size()));
    for (const Variable& v : layout_.variables()) {
      variables_of_[v.layer].push_back(&v);
      const bool weights = variables_of_[v.layer].size() == 1;
      if (rounds_ && weights) round(std::span<double>(variables_).subspan(v.offset, v.size));
    }
  }

  // Fills in the example's outputs and, unless they are forced, decisions. Returns its
  // cross-entropy.
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
  bool multiplies(std::size_t layer) const { return rounds_ && !variables_of_[layer].empty(); }
  static void round(std::span<double> values) {
    for (double& value : values) value = round_to_bf16(value);
  }
  // Values as a layer with weights reads them; `room` holds those that are rounded.
  const double* operand(std::size_t layer, const double* values, std::size_t size,
                        std::vector<double>& room) const {
    if (!multiplies(layer)) return values;
    room.assign(values, values + size);
    round(room);
    return room.data();
  }
  void relu_forward(std::size_t layer, std::size_t example);
  void max_pool_forward(std::size_t layer, const MaxPool& pool, std::size_t example);

  const Net& net_;
  const std::vector<Extent> extents_;
  const VariableLayout layout_;
  std::vector<double> variables_;  // weights rounded where operands are
  const Batch& batch_;
  const bool forced_;
  const bool rounds_;
  Pass& pass_;
  std::vector<std::vector<const Variable*>> variables_of_;
  std::vector<std::vector<Contradiction>> contradictions_;
};

}  // namespace towers::reference
