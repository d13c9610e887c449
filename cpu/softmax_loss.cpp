#include "cpu/softmax_loss.h"

#include <algorithm>
#include <cmath>

namespace towers::cpu {

// A few thousand exponentials per step: not worth vectors.
double softmax_loss(const float* logits, const std::int32_t* labels, int images, int classes,
                    float* d_logits) {
  double loss = 0;
  for (int image = 0; image < images; ++image, logits += classes, d_logits += classes) {
    const double largest = static_cast<double>(*std::max_element(logits, logits + classes));
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - largest);
    for (int c = 0; c < classes; ++c) {
      const double probability = std::exp(static_cast<double>(logits[c]) - largest) / sum;
      d_logits[c] = static_cast<float>((probability - (c == labels[image] ? 1.0 : 0.0)) / images);
    }
    loss += std::log(sum) - (static_cast<double>(logits[labels[image]]) - largest);
  }
  return loss / images;
}

}  // namespace towers::cpu
