#include "cuda/variable_pieces.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace towers::cuda {

std::vector<Piece> cut_into_pieces(const VariableLayout& layout) {
  std::vector<Piece> pieces;
  for (std::size_t v = 0; v < layout.variables().size(); ++v) {
    const Variable& variable = layout.variables()[v];
    for (std::size_t at = 0; at < variable.size; at += kPieceSize)
      pieces.push_back(
          {static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(variable.offset + at),
           static_cast<std::uint32_t>(std::min<std::size_t>(kPieceSize, variable.size - at)),
           static_cast<float>(variable.weight_decay)});
  }
  return pieces;
}

NonFinite non_finite_of(const VariableLayout& layout, std::uint64_t trouble) {
  const TroubleFields fields = trouble_fields(trouble);
  const std::string& variable = layout.variables()[static_cast<std::size_t>(fields.variable)].name;
  switch (fields.trouble) {
    case Trouble::tower_gradient:
      return {fields.tower, "gradient of " + variable, fields.step};
    // The sum of finite gradients may overflow: no tower's fault then.
    case Trouble::gradient:
      return {-1, "gradient of " + variable, fields.step};
    case Trouble::average:
      return {-1, variable + "/ExponentialMovingAverage", fields.step};
    case Trouble::loss:
      return {fields.tower, "", fields.step};
    case Trouble::old_value:
    case Trouble::new_value:
      break;
  }
  return {-1, variable, fields.step};
}

}  // namespace towers::cuda
