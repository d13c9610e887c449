#pragma once
// Every kernel of our own, as functions that enqueue on a stream and return. Pointers are device
// memory; tensors are contiguous, NHWC: [image][height][width][channels]. T is what they are stored
// as, one of TOWERS_FOR_EACH_STORAGE, W what is computed in, one of TOWERS_FOR_EACH_WIDE; values
// are rounded to T when they are stored, and sums never before. All sums run in an order fixed by
// the shapes alone, so results repeat. NaN and infinity are passed on, never swallowed. The
// arithmetic lives in *_math.h headers that plain compilers read too.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/net.h"
#include "cuda/distort_math.h"
#include "cuda/loss_scale_math.h"
#include "cuda/runtime.h"
#include "cuda/storage.h"
#include "cuda/update_math.h"
#include "cuda/window.h"

namespace towers::cuda {

// ---- Filters: our HWIO [kernel][kernel][inputs][outputs] and cuDNN's KRSC
// [outputs][kernel][kernel][inputs].
template <class T>
void hwio_to_krsc(Stream& stream, int kernel, int inputs, int outputs, const T* hwio, T* krsc);
template <class T>
void krsc_to_hwio(Stream& stream, int kernel, int inputs, int outputs, const T* krsc,
                  Wide<T>* hwio);

// ---- Direct convolution, of any shape: where cuDNN has no engine, and --convolution=direct.
// weights: HWIO. output = convolution(input) + biases, then relu where asked.
template <class T>
void direct_convolution(Stream& stream, const WindowShape& shape, const T* input, const T* weights,
                        const T* biases, bool relu, T* output);
template <class T>
void direct_convolution_input_gradient(Stream& stream, const WindowShape& shape, const T* d_output,
                                       const T* weights, T* d_input);
template <class T>
void direct_convolution_weight_gradient(Stream& stream, const WindowShape& shape, const T* input,
                                        const T* d_output, Wide<T>* d_weights);

// ---- Elementwise and reductions.
// values[row][channel] += biases[channel], then relu where asked; in place.
template <class T>
void add_biases(Stream& stream, std::size_t rows, int channels, const T* biases, bool relu,
                T* values);
// d[i] is kept where output[i] > 0 or is NaN, else 0: the gradient before the relu, in place.
template <class Output, class T>
void relu_backward(Stream& stream, std::size_t count, const Output* output, T* d);
// to = from, `count` values aligned to 16 bytes; from float or to it.
template <class From, class To>
void convert(Stream& stream, std::size_t count, const From* from, To* to);
// out[channel] = sum over rows of values[row][channel]. scratch: column_sums_scratch(...) values.
std::size_t column_sums_scratch(std::size_t rows, int channels);
template <class T>
void column_sums(Stream& stream, std::size_t rows, int channels, const T* values, Wide<T>* out,
                 Wide<T>* scratch);

// ---- Max pooling. winners: one byte per output value, the position in the window (row * size +
// column) of the first largest value; NaN wins; null where no backward pass follows. Windows up to
// 15 x 15.
// relu_input: the input is the output of a relu, and a maximum of zero gets no winner, so that
// max_pool_backward applies the relu's gradient as well without reading the relu's output.
template <class T>
void max_pool(Stream& stream, const WindowShape& shape, const T* input, T* output,
              std::uint8_t* winners, bool relu_input);
// d_input is written whole.
template <class T>
void max_pool_backward(Stream& stream, const WindowShape& shape, const T* d_output,
                       const std::uint8_t* winners, T* d_input);

// ---- Local response normalization over `pixels` pixels of `channels` channels.
template <class T>
void local_response_norm(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                         int channels, const T* input, T* output);
// relu_input: `input` is the output of a relu whose gradient is applied to d_input as well.
template <class T>
void local_response_norm_backward(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                                  int channels, const T* input, const T* d_output, bool relu_input,
                                  T* d_input);

// ---- A pool and a norm, one after the other, in one pass, for shapes that pool_and_norm_fit says,
// and for pointers aligned to four values. The same bits as one by one in float and double; in 16
// bits what lies between is not rounded on the way, but for `pooled`.
bool pool_and_norm_fit(const WindowShape& shape, const LocalResponseNorm& norm);
// pooled: the pool's output, which the backward pass reads; null as winners may be.
// relu_input as for max_pool.
template <class T>
void pool_then_norm(Stream& stream, const WindowShape& shape, const LocalResponseNorm& norm,
                    const T* input, bool relu_input, T* pooled, std::uint8_t* winners, T* output);
template <class T>
void pool_then_norm_backward(Stream& stream, const WindowShape& shape,
                             const LocalResponseNorm& norm, const T* pooled, const T* d_output,
                             const std::uint8_t* winners, T* d_input);
// relu_input as for local_response_norm_backward.
template <class T>
void norm_then_pool(Stream& stream, const LocalResponseNorm& norm, const WindowShape& shape,
                    const T* input, T* output, std::uint8_t* winners);
template <class T>
void norm_then_pool_backward(Stream& stream, const LocalResponseNorm& norm,
                             const WindowShape& shape, const T* input, const T* d_output,
                             const std::uint8_t* winners, bool relu_input, T* d_input);

// ---- Mean softmax cross-entropy over the batch and its gradient.
// labels: [batch]; d_logits: [batch][classes] = (softmax - one hot) / batch, times the scale where
// there is one, or null for the loss alone; losses: [batch], scratch; mean: one float.
template <class T>
void softmax_loss(Stream& stream, int batch, int classes, const Wide<T>* logits,
                  const std::int32_t* labels, const LossScale* scale, T* d_logits, Wide<T>* losses,
                  float* mean);

// ---- The input, from records in device memory: images [batch][24][24][3], labels [batch].
// Positions first_position ... of the endless stream, as data/pipeline.h gives them: equal in crop
// and flip, the values within 1e-5, then rounded to T. The same bits wherever the records come
// from.
template <class T>
void training_batch(Stream& stream, const TrainingSet& set, std::uint64_t first_position, int batch,
                    T* images, std::int32_t* labels);

// ---- The flat buffer (cuda/update_math.h has Piece, UpdateArguments and the trouble keys).
// sum = tower_gradient (first) or sum + tower_gradient; a value of tower_gradient that is not
// finite is recorded for `tower` in *trouble, unless a loss scale may be the reason.
template <class W>
void accumulate_gradients(Stream& stream, const Piece* pieces, int piece_count, bool first,
                          std::int64_t step, int tower, const W* tower_gradient, W* sum,
                          const LossScale* scale, std::uint64_t* trouble);
// sum = towers[0] + towers[1] + ..., in that order. towers: [count] device pointers to gradients.
template <class W>
void sum_towers(Stream& stream, const Piece* pieces, int piece_count, const W* const* towers,
                int count, W* sum);
template <class T>
void update(Stream& stream, const UpdateArguments<T>& arguments);
// Gives the one update in a graph another step, learning rate and average's weight (what else is in
// `arguments` has to be as captured), as Graph::set_arguments, and false where that is.
template <class T>
bool set_update(Graph& graph, const UpdateArguments<T>& arguments);

}  // namespace towers::cuda
