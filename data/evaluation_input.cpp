#include "data/evaluation_input.h"

#include <stdexcept>

#include "core/distortion.h"

namespace towers::data {

void fill_evaluation_batch(const Dataset& dataset, std::size_t begin, int count, float* images,
                           std::int32_t* labels) {
  const std::size_t size = dataset.size();
  const std::size_t n = count < 0 ? size + 1 : static_cast<std::size_t>(count);
  if (begin > size || n > size - begin)
    throw std::out_of_range("evaluation batch beyond the data set");
  constexpr std::size_t kValues = std::size_t{3} * kCropPixels;
  for (std::size_t i = 0; i < n; ++i) {
    distort(dataset.image(begin + i), Distortion{}, images + i * kValues);
    labels[i] = dataset.label(begin + i);
  }
}

}  // namespace towers::data
