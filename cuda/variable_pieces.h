#pragma once
// How variables are cut into pieces, of which a block of threads takes one, and how trouble that
// was met in one is told.

#include <cstdint>
#include <vector>

#include "core/backend.h"
#include "core/variables.h"
#include "cuda/update_math.h"

namespace towers::cuda {

// All variables, in the layout's order.
std::vector<Piece> cut_into_pieces(const VariableLayout& layout);

// trouble: a key of update_math.h, other than kNoTrouble.
NonFinite non_finite_of(const VariableLayout& layout, std::uint64_t trouble);

}  // namespace towers::cuda
