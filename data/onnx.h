#pragma once
// A net with its variables as an ONNX model, for the runtimes of others.

#include <map>
#include <span>
#include <string>

#include "core/net.h"
#include "core/variables.h"

namespace towers::data {

struct OnnxOptions {
  // false: the input "images" is the evaluation input, float32 [batch, height, width, channels],
  // standardized. true: it is uint8 [batch, 32, 32, 3], RGB from 0 to 255; the model crops the
  // center and standardizes it (for nets whose input is 24 x 24 x 3 alone).
  bool preprocessing = false;
  std::string version{};                          // of the program
  std::map<std::string, std::string> metadata{};  // texts that travel with the model
};

// The bytes of the model file: operator set 17, IR version 8. Outputs "logits" and "probabilities",
// both float32 [batch, classes]; the batch may have any size. `variables`: a flat buffer of
// layout.size() values. Throws std::invalid_argument for a net that cannot be written.
std::string onnx_model(const Net& net, const VariableLayout& layout,
                       std::span<const float> variables, const OnnxOptions& options);

}  // namespace towers::data
