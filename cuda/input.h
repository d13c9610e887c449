#pragma once
// The training input made on one GPU: crops, flips, distorted and standardized there, of records
// that come with each batch or of the whole set in the GPU's memory. Either way one kernel makes
// the same bits. The host sends records rather than what it could distort itself: 3,073 bytes an
// image cross the bus instead of 6,912, and one thread gathers 1.7 million images a second where it
// distorts 0.55 million (one core of an EPYC 9004), while a GPU takes about a million.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/order.h"
#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

// Throws Error where the net's images are not those of the distortion, or a label is not one of its
// classes.
void check_training_records(const Net& net, const TrainingRecords& set);

class DeviceInput {
 public:
  // Of batches of `batch_size` examples. positions: copies the set.
  DeviceInput(int device, InputForm form, const TrainingRecords& set, int batch_size,
              std::shared_ptr<EpochOrders> orders);

  // Whether a set would leave enough of the GPU's memory for evaluation and other processes.
  static bool fits(int device, const TrainingRecords& set, int batch_size);

  // Enqueues. records: the batch's, in device memory; null where the set is here. images
  // [size][24][24][3], labels [size]. Calls come on one stream, which is this GPU's.
  // T: one of TOWERS_FOR_EACH_STORAGE.
  template <class T>
  void make(Stream& stream, const Batch& batch, const std::uint8_t* records, T* images,
            std::int32_t* labels);

 private:
  // An epoch's permutation on its way to the GPU and there.
  struct Row {
    explicit Row(int device) : copied(device) {}
    std::uint64_t epoch = 0;
    bool filled = false;
    Event copied;
  };
  void bring_order(Stream& stream, std::uint64_t epoch);

  std::uint64_t seed_;
  std::shared_ptr<EpochOrders> orders_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::shared_ptr<void> host_rows_;  // pinned: what copies read until memory_ has gone
  DeviceMemory memory_;
  TrainingSet set_;
  std::span<std::uint32_t> device_rows_;
};

}  // namespace towers::cuda
