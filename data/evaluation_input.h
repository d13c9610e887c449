#pragma once
// The evaluation input: every image once, in file order, its central crop standardized.

#include <cstddef>
#include <cstdint>

#include "data/dataset.h"

namespace towers::data {

// Examples [begin, begin + count) of `dataset`. images: [count, 24, 24, 3] floats, NHWC; labels:
// [count]. Throws std::out_of_range where the range reaches beyond the data set.
void fill_evaluation_batch(const Dataset& dataset, std::size_t begin, int count, float* images,
                           std::int32_t* labels);

}  // namespace towers::data
