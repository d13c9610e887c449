#pragma once
// The layers of one image in double precision, for --precision=fp64: plain loops with sums in one
// fixed order, the same on every machine. Activations are contiguous, HWC; x is a layer's input, y
// its output, d_ what belongs to a gradient. Backward functions write d_x whole and add to d_w and
// d_b.

#include <cstdint>

#include "core/net.h"

namespace towers::cpu::fp64 {

// y = max(0, v), where `relu` is set; NaN stays NaN. And its gradient: zero where y is not
// positive.
void relu(std::size_t size, double* y);
void relu_backward(std::size_t size, const double* y, double* d_y);

// w: [kernel][kernel][inputs][outputs]. d_x may be null. The relu is the caller's.
void convolution(const Convolution& layer, const Extent& in, const Extent& out, const double* x,
                 const double* w, const double* b, double* y);
void convolution_backward(const Convolution& layer, const Extent& in, const Extent& out,
                          const double* x, const double* w, const double* d_y, double* d_x,
                          double* d_w, double* d_b);

// w: [inputs][outputs]. d_x may be null. The relu is the caller's.
void dense(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
           const double* b, double* y);
void dense_backward(std::size_t inputs, std::size_t outputs, const double* x, const double* w,
                    const double* d_y, double* d_x, double* d_w, double* d_b);

// winner: where in x each output was found; of equal values the first, row-major; a NaN wins.
void max_pool(const MaxPool& layer, const Extent& in, const Extent& out, const double* x, double* y,
              std::int32_t* winner);
void max_pool_backward(const Extent& in, const Extent& out, const double* d_y,
                       const std::int32_t* winner, double* d_x);

void local_response_norm(const LocalResponseNorm& layer, const Extent& extent, const double* x,
                         double* y);
void local_response_norm_backward(const LocalResponseNorm& layer, const Extent& extent,
                                  const double* x, const double* d_y, double* d_x);

// -log(softmax(logits)[label]). Writes its gradient times `scale`.
double softmax_loss(std::size_t classes, const double* logits, std::int32_t label, double scale,
                    double* d_logits);

}  // namespace towers::cpu::fp64
