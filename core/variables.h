#pragma once
// The trainable variables of a net as named views of one flat buffer. Gradients and moving averages
// have the same layout, so averaging is one pass (or one all-reduce), the update is one pass, and a
// checkpoint is one copy.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/net.h"

namespace towers {

struct Variable {
  std::string name;                 // as TensorFlow's: "conv1/weights"
  std::vector<std::int64_t> shape;  // HWIO, [in, out] or [out]
  std::size_t offset = 0;           // in values, a multiple of 16
  std::size_t size = 0;             // in values
  double stddev = 0;                // initial: truncated normal; 0: `constant`
  double constant = 0;
  double weight_decay = 0;
  std::size_t layer = 0;  // index into Net::layers
};

// TensorFlow's order: each layer's weights, then its biases. Views start at multiples of 16 values;
// the padding between them holds zeros and stays so.
class VariableLayout {
 public:
  explicit VariableLayout(const Net& net);

  const std::vector<Variable>& variables() const { return variables_; }
  std::size_t size() const { return size_; }                // of the flat buffer, padding included
  std::size_t trainable_values() const { return values_; }  // without padding
  const Variable& find(const std::string& name) const;      // throws std::out_of_range

 private:
  std::vector<Variable> variables_;
  std::size_t size_ = 0;
  std::size_t values_ = 0;
};

inline std::span<float> view(std::span<float> flat, const Variable& v) {
  return flat.subspan(v.offset, v.size);
}
inline std::span<const float> view(std::span<const float> flat, const Variable& v) {
  return flat.subspan(v.offset, v.size);
}

// Fills `flat` (layout.size() values) with initial values: a pure function of (layout, seed).
void initialize_variables(const VariableLayout& layout, std::uint64_t seed, std::span<float> flat);

}  // namespace towers
