#pragma once
// TensorFlow's values (tests/golden, and the larger ones beside the checkout) in this project's
// terms.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/net.h"
#include "tests/reference/net.h"

namespace towers::reference {

// A forward and backward pass: what went in and what TensorFlow made of it.
struct GoldenPass {
  Net net;
  std::vector<float> variables;                       // in the layout of VariableLayout
  std::vector<float> images;                          // [size, input extent]
  std::vector<std::int32_t> labels;                   // [size]
  std::map<std::string, std::vector<float>> outputs;  // by layer, where stored
  std::vector<float> logits;
  std::vector<float> weight_losses;  // in the layout's order
  float cross_entropy = 0, total_loss = 0;
  std::vector<float> gradients;  // in the layout of VariableLayout
};

// Folder tests/golden of the checkout.
std::filesystem::path golden_dir();

// tests/golden/small_net.safetensors.
GoldenPass small_net_pass();

// The CIFAR-10 net from model.ckpt-1500 on the images of FOLDER/golden/NAME.safetensors. Throws
// when a file is absent or damaged.
GoldenPass checkpoint_pass(const std::filesystem::path& folder, const std::string& name);

// A tensor told briefly: its norm, and up to 12 values spread evenly from the first to the last.
struct Brief {
  double norm = 0;
  std::vector<double> picked;
};
Brief brief(std::span<const double> tensor);

// tests/golden/curve.json: ten training steps of the CIFAR-10 net on one batch.
struct GoldenCurve {
  struct Step {
    double cross_entropy = 0, total_loss = 0;
    std::vector<double> weight_losses;
  };
  Net net;
  std::vector<float> variables;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  float learning_rate = 0;
  std::vector<Step> steps;
  std::map<std::string, Brief> first_gradients, last_variables, last_averages;  // by variable
};
GoldenCurve golden_curve();

// images and labels as the reference takes them.
Batch make_batch(std::span<const float> images, std::span<const std::int32_t> labels);

}  // namespace towers::reference
