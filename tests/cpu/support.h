#pragma once
// What several of these tests need.

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/models/cifar10.h"
#include "core/variables.h"
#include "cpu/backend.h"
#include "cpu/simd.h"

namespace towers::cpu::test {

// Calls f(target) for every vector target that this machine runs.
template <class F>
void for_each_target(F f) {
  for (const SimdTarget target : available_targets()) {
    INFO("target " << hwy::TargetName(target));
    f(target);
  }
}

// The CIFAR-10 net's layers with few channels: quick, and not a multiple of any vector.
inline Net small_cifar10_net() {
  Net net = cifar10_net(0.004);
  for (Layer& layer : net.layers) {
    if (auto* convolution = std::get_if<Convolution>(&layer.op)) convolution->outputs = 13;
    if (auto* dense = std::get_if<Dense>(&layer.op))
      dense->outputs = layer.name == "softmax_linear" ? 10 : 37;
  }
  return net;
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline const std::vector<std::string> kConvolutions{"direct", "winograd4", "winograd2"};

// Batches with values of their own for each tower.
class Batches {
 public:
  Batches(const Net& net, int towers, int size) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-1.5f, 1.5f);
    for (int t = 0; t < towers; ++t) {
      std::vector<float>& images =
          images_.emplace_back(static_cast<std::size_t>(size) * net.input.size());
      for (float& x : images) x = value(random);
      std::vector<std::int32_t>& labels = labels_.emplace_back(size);
      for (std::int32_t& label : labels)
        label = static_cast<std::int32_t>(random() % static_cast<unsigned>(net.classes));
      batches_.push_back({images.data(), labels.data(), size});
    }
  }
  std::span<const Batch> get() const { return batches_; }
  std::vector<float>& images(std::size_t tower) { return images_[tower]; }
  std::vector<std::int32_t>& labels(std::size_t tower) { return labels_[tower]; }

 private:
  // Lists, so that a batch's pointers stay good; moving a vector keeps them too.
  std::vector<std::vector<float>> images_;
  std::vector<std::vector<std::int32_t>> labels_;
  std::vector<Batch> batches_;
};

// `towers` towers of `backend`, round its devices, with initial values.
inline std::unique_ptr<Towers> compile(Backend& backend, const Net& net, int towers, int size,
                                       const std::string& convolution = "auto",
                                       Precision precision = Precision::fp32) {
  CompileOptions options;
  options.precision = precision;
  options.convolution = convolution;
  options.batch_size = size;
  for (int t = 0; t < towers; ++t)
    options.device_of_tower.push_back(t % static_cast<int>(backend.devices().size()));
  std::unique_ptr<Towers> compiled = backend.compile(net, options);
  const VariableLayout layout(net);
  std::vector<float> variables(layout.size());
  initialize_variables(layout, 3, variables);
  compiled->write_variables(variables, variables);
  return compiled;
}

inline void step(Towers& towers, std::span<const Batch> batches) {
  towers.compute_gradients(batches, false);
  towers.average_gradients();
  towers.apply_gradients(0.1f, 0.9f);
}

}  // namespace towers::cpu::test
