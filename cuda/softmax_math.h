#pragma once
// Softmax cross-entropy of one image, shared by `lanes` neighbouring threads (a power of two), of
// which each takes every lanes-th class.

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace towers::cuda {

// Exponentials are single precision, as exact as the logits are; sums are double.

// NaN is larger than any number.
TOWERS_HD inline float larger(float a, float b) {
  return a > b || a != a ? a : b;
}

TOWERS_HD inline float largest_logit(const float* logits, int classes, int lane, int lanes) {
  float largest = -INFINITY;
  for (int c = lane; c < classes; c += lanes) largest = larger(largest, logits[c]);
  return largest;
}

TOWERS_HD inline double sum_of_exponentials(const float* logits, int classes, int lane, int lanes,
                                            float largest) {
  double sum = 0;
  for (int c = lane; c < classes; c += lanes)
    sum += static_cast<double>(std::exp(logits[c] - largest));
  return sum;
}

// -log(softmax(logits)[label]).
TOWERS_HD inline float cross_entropy(const float* logits, int label, float largest, double sum) {
  return static_cast<float>(std::log(sum) -
                            (static_cast<double>(logits[label]) - static_cast<double>(largest)));
}

// d_logits = (softmax - one hot) / batch.
TOWERS_HD inline void softmax_gradient(const float* logits, int classes, int lane, int lanes,
                                       int label, float largest, double sum, int batch,
                                       float* d_logits) {
  const double inverse = 1 / sum, share = 1.0 / batch;
  for (int c = lane; c < classes; c += lanes) {
    const double probability = static_cast<double>(std::exp(logits[c] - largest)) * inverse;
    d_logits[c] = static_cast<float>((probability - (c == label ? 1.0 : 0.0)) * share);
  }
}

}  // namespace towers::cuda
