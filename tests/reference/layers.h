#pragma once
// Each layer kind of core/net.h, forward and backward, for one example in double precision: the
// plain loops of the definition. What fast code is compared with, so nothing here is clever.
//
// Activations are HWC of the given Extent. Backward functions take dy, the gradient of the loss
// with respect to the output, overwrite dx, and add to dw and db.

#include <cstddef>
#include <cstdint>

#include "core/net.h"

namespace towers::reference {

// y = convolution(x, w) + b, before any relu. x: `in`; w: HWIO; y: output_extent.
void convolution_forward(const Convolution& c, Extent in, const double* x, const double* w,
                         const double* b, double* y);
void convolution_backward(const Convolution& c, Extent in, const double* x, const double* w,
                          const double* dy, double* dx, double* dw, double* db);

// winner: for each output value the index into x that it was taken from; of equal values the first
// in row-major order, as TensorFlow's. A NaN in the window wins.
void max_pool_winners(const MaxPool& p, Extent in, const double* x, std::int32_t* winner);

// The two halves of a layer whose decisions are known: y[i] = x[winner[i]], and its transpose.
void gather(std::size_t outputs, const std::int32_t* winner, const double* x, double* y);
void scatter_add(std::size_t outputs, const std::int32_t* winner, const double* dy,
                 std::size_t inputs, double* dx);

void local_response_norm_forward(const LocalResponseNorm& n, Extent in, const double* x, double* y);
void local_response_norm_backward(const LocalResponseNorm& n, Extent in, const double* x,
                                  const double* dy, double* dx);

// y = x w + b, before any relu; w: [inputs, outputs].
void dense_forward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                   const double* b, double* y);
void dense_backward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                    const double* dy, double* dx, double* dw, double* db);

// -log(softmax(logits)[label]); dlogits: its gradient, softmax - onehot.
double softmax_cross_entropy(int classes, const double* logits, std::int32_t label,
                             double* dlogits);

}  // namespace towers::reference
