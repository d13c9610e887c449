#pragma once
// The prefetching input pipeline: threads fill batches ahead of the towers, in a fixed order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/backend.h"
#include "data/dataset.h"

namespace towers::data {

struct PipelineOptions {
  int batch_size = 128;
  int capacity = 2;  // batches ready ahead: 2 * towers
  int threads = 1;   // 0: next() makes the batch itself, the synchronous reference
  std::uint64_t seed = 0;
  std::uint64_t first_position = 0;  // of the example stream (core/order.h)
  // Several readers share the stream: each takes `turn` batches, then it is the others' turn.
  int turn = 1, readers = 1;
  // positions: a batch is a place in the stream, and nothing is made ahead.
  InputForm form = InputForm::images;
};

// Allocates `bytes` of zeroed memory for batches, aligned to 64 bytes (Backend::allocate).
using Allocate = std::function<std::shared_ptr<void>(std::size_t bytes)>;

// Batch k holds stream positions first_position + [p * B, (p + 1) * B), where p is k, or, of
// several readers, k / turn * turn * readers + k % turn: the same batches for any number of
// threads. next() and release() are called by one thread. Destruction stops and joins the threads
// at any moment; an exception in a thread comes out of next().
class Pipeline {
 public:
  // `dataset` must outlive the pipeline.
  Pipeline(const Dataset& dataset, const PipelineOptions& options, const Allocate& allocate);
  ~Pipeline();

  // The next batch of the stream; waits for it. At most `capacity` batches may be held at a time;
  // each is valid until release().
  Batch next();
  // Gives the oldest batch held back to the threads.
  void release();

  // Seconds that next() has waited so far.
  double seconds_waited() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace towers::data
