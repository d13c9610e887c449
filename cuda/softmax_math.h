#pragma once
// Softmax cross-entropy of one image, shared by `lanes` neighbouring threads (a power of two), of
// which each takes every lanes-th class.

#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "cuda/storage.h"

namespace towers::cuda {

// Exponentials are as exact as the logits are (W: float or double); sums are double.

// NaN is larger than any number.
template <class W>
TOWERS_HD inline W larger(W a, W b) {
  return a > b || a != a ? a : b;
}

template <class W>
TOWERS_HD inline W largest_logit(const W* logits, int classes, int lane, int lanes) {
  W largest = -static_cast<W>(INFINITY);
  for (int c = lane; c < classes; c += lanes) largest = larger(largest, logits[c]);
  return largest;
}

template <class W>
TOWERS_HD inline double sum_of_exponentials(const W* logits, int classes, int lane, int lanes,
                                            W largest) {
  double sum = 0;
  for (int c = lane; c < classes; c += lanes)
    sum += static_cast<double>(std::exp(logits[c] - largest));
  return sum;
}

// -log(softmax(logits)[label]).
template <class W>
TOWERS_HD inline W cross_entropy(const W* logits, int label, W largest, double sum) {
  return static_cast<W>(std::log(sum) -
                        (static_cast<double>(logits[label]) - static_cast<double>(largest)));
}

// d_logits = (softmax - one hot) * share, the share of an image in the loss.
template <class T>
TOWERS_HD inline void softmax_gradient(const Wide<T>* logits, int classes, int lane, int lanes,
                                       int label, Wide<T> largest, double sum, double share,
                                       T* d_logits) {
  const double inverse = 1 / sum;
  for (int c = lane; c < classes; c += lanes) {
    const double probability = static_cast<double>(std::exp(logits[c] - largest)) * inverse;
    d_logits[c] = narrow<T>(static_cast<Wide<T>>((probability - (c == label ? 1.0 : 0.0)) * share));
  }
}

}  // namespace towers::cuda
