#pragma once
// Every kernel of our own, as functions that enqueue on a stream and return. Pointers are device
// memory; tensors are contiguous, float32, NHWC: [image][height][width][channels]. All sums run in
// an order fixed by the shapes alone, so results repeat. NaN and infinity are passed on, never
// swallowed. The arithmetic lives in *_math.h headers that plain compilers read too.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/net.h"
#include "cuda/distort_math.h"
#include "cuda/runtime.h"
#include "cuda/update_math.h"
#include "cuda/window.h"

namespace towers::cuda {

// ---- Filters: our HWIO [kernel][kernel][inputs][outputs] and cuDNN's KRSC
// [outputs][kernel][kernel][inputs].
void hwio_to_krsc(Stream& stream, int kernel, int inputs, int outputs, const float* hwio,
                  float* krsc);
void krsc_to_hwio(Stream& stream, int kernel, int inputs, int outputs, const float* krsc,
                  float* hwio);

// ---- Direct convolution, of any shape: where cuDNN has no engine, and --convolution=direct.
// weights: HWIO. output = convolution(input) + biases, then relu where asked.
void direct_convolution(Stream& stream, const WindowShape& shape, const float* input,
                        const float* weights, const float* biases, bool relu, float* output);
void direct_convolution_input_gradient(Stream& stream, const WindowShape& shape,
                                       const float* d_output, const float* weights, float* d_input);
void direct_convolution_weight_gradient(Stream& stream, const WindowShape& shape,
                                        const float* input, const float* d_output,
                                        float* d_weights);

// ---- Elementwise and reductions.
// values[row][channel] += biases[channel], then relu where asked; in place.
void add_biases(Stream& stream, std::size_t rows, int channels, const float* biases, bool relu,
                float* values);
// d[i] is kept where output[i] > 0 or is NaN, else 0: the gradient before the relu, in place.
void relu_backward(Stream& stream, std::size_t count, const float* output, float* d);
// out[channel] = sum over rows of values[row][channel]. scratch: column_sums_scratch(...) floats.
std::size_t column_sums_scratch(std::size_t rows, int channels);
void column_sums(Stream& stream, std::size_t rows, int channels, const float* values, float* out,
                 float* scratch);

// ---- Max pooling. winners: one byte per output value, the position in the window (row * size +
// column) of the first largest value; NaN wins. Windows up to 15 x 15.
// relu_input: the input is the output of a relu, and a maximum of zero gets no winner, so that
// max_pool_backward applies the relu's gradient as well without reading the relu's output.
void max_pool(Stream& stream, const WindowShape& shape, const float* input, float* output,
              std::uint8_t* winners, bool relu_input);
// d_input is written whole.
void max_pool_backward(Stream& stream, const WindowShape& shape, const float* d_output,
                       const std::uint8_t* winners, float* d_input);

// ---- Local response normalization over `pixels` pixels of `channels` channels.
void local_response_norm(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                         int channels, const float* input, float* output);
// relu_input: `input` is the output of a relu whose gradient is applied to d_input as well.
void local_response_norm_backward(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                                  int channels, const float* input, const float* d_output,
                                  bool relu_input, float* d_input);

// ---- A pool and a norm, one after the other, in one pass: the same bits as one by one, for shapes
// that pool_and_norm_fit says, and for pointers aligned to 16 bytes.
bool pool_and_norm_fit(const WindowShape& shape, const LocalResponseNorm& norm);
// pooled: the pool's output, which the backward pass reads; relu_input as for max_pool.
void pool_then_norm(Stream& stream, const WindowShape& shape, const LocalResponseNorm& norm,
                    const float* input, bool relu_input, float* pooled, std::uint8_t* winners,
                    float* output);
void pool_then_norm_backward(Stream& stream, const WindowShape& shape,
                             const LocalResponseNorm& norm, const float* pooled,
                             const float* d_output, const std::uint8_t* winners, float* d_input);
// relu_input as for local_response_norm_backward.
void norm_then_pool(Stream& stream, const LocalResponseNorm& norm, const WindowShape& shape,
                    const float* input, float* output, std::uint8_t* winners);
void norm_then_pool_backward(Stream& stream, const LocalResponseNorm& norm,
                             const WindowShape& shape, const float* input, const float* d_output,
                             const std::uint8_t* winners, bool relu_input, float* d_input);

// ---- Mean softmax cross-entropy over the batch and its gradient.
// labels: [batch]; d_logits: [batch][classes] = (softmax - one hot) / batch, or null for the loss
// alone; losses: [batch], scratch; mean: one float.
void softmax_loss(Stream& stream, int batch, int classes, const float* logits,
                  const std::int32_t* labels, float* d_logits, float* losses, float* mean);

// ---- The input, from records in device memory: images [batch][24][24][3], labels [batch].
// Positions first_position ... of the endless stream, as data/pipeline.h gives them: equal in crop
// and flip, the values within 1e-5.
void training_batch(Stream& stream, const TrainingSet& set, std::uint64_t first_position, int batch,
                    float* images, std::int32_t* labels);
// Records first ... of [..][kRecordBytes], central crop, standardized.
void evaluation_batch(Stream& stream, const std::uint8_t* records, std::uint64_t first, int batch,
                      float* images, std::int32_t* labels);

// ---- The flat buffer (cuda/update_math.h has Piece, UpdateArguments and the trouble keys).
// sum = tower_gradient (first) or sum + tower_gradient; a value of tower_gradient that is not
// finite is recorded for `tower` in *trouble.
void accumulate_gradients(Stream& stream, const Piece* pieces, int piece_count, bool first,
                          std::int64_t step, int tower, const float* tower_gradient, float* sum,
                          std::uint64_t* trouble);
// sum = towers[0] + towers[1] + ..., in that order. towers: [count] device pointers to gradients.
void sum_towers(Stream& stream, const Piece* pieces, int piece_count, const float* const* towers,
                int count, float* sum);
void update(Stream& stream, const UpdateArguments& arguments);

}  // namespace towers::cuda
