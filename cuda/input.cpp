#include "cuda/input.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/error.h"

namespace towers::cuda {
namespace {

// What must be left of a GPU's memory: for evaluation, which compiles a net of its own, and others.
constexpr std::size_t kSpare = std::size_t{256} << 20;

// Epochs that a batch may reach into: at least two, since an epoch may end within it.
std::uint64_t epochs_of(std::uint64_t size, int batch_size) {
  return 2 + (static_cast<std::uint64_t>(batch_size) - 1) / size;
}

std::uint64_t size_of(const TrainingRecords& set) {
  return set.records.size() / kRecordBytes;
}

}  // namespace

void check_training_records(const Net& net, const TrainingRecords& set) {
  if (net.input != Extent{kCropSide, kCropSide, 3})
    throw Error("input is made on GPUs for images of 24 x 24 x 3 alone; give --input=host");
  const std::uint64_t size = size_of(set);
  if (size == 0 || size * kRecordBytes != set.records.size() ||
      size > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("a training set of whole records is wanted");
  for (std::uint64_t i = 0; i < size; ++i)
    if (set.records[i * kRecordBytes] >= net.classes)
      throw Error("label " + std::to_string(set.records[i * kRecordBytes]) + " of record " +
                  std::to_string(i) + " of the training set is not in 0.." +
                  std::to_string(net.classes - 1) + "; check the data set");
}

bool DeviceInput::fits(int device, const TrainingRecords& set, int batch_size) {
  const DeviceGuard guard(device);
  std::size_t free = 0, total = 0;
  TOWERS_CUDA(cudaMemGetInfo(&free, &total));
  const std::uint64_t size = size_of(set);
  return set.records.size() + epochs_of(size, batch_size) * size * sizeof(std::uint32_t) + kSpare <=
         free;
}

DeviceInput::DeviceInput(int device, InputForm form, const TrainingRecords& set, int batch_size,
                         std::shared_ptr<EpochOrders> orders)
    : seed_(set.seed), orders_(std::move(orders)), memory_(device) {
  if (form != InputForm::positions) return;
  const std::uint64_t size = size_of(set), epochs = epochs_of(size, batch_size);
  const auto records = memory_.allocate<std::uint8_t>(set.records.size());
  device_rows_ = memory_.allocate<std::uint32_t>(epochs * size);
  host_rows_ = allocate_pinned(device_rows_.size_bytes());
  for (std::uint64_t e = 0; e < epochs; ++e) rows_.push_back(std::make_unique<Row>(device));
  set_.records = records.data();
  set_.size = static_cast<std::uint32_t>(size);
  set_.orders = device_rows_.data();
  set_.epochs = static_cast<std::uint32_t>(epochs);
  set_.seed = seed_;
  Stream stream(device);
  copy_to_device(stream, records, set.records);
  stream.synchronize();
}

// On the stream of the batches, so that it comes after all that read the row's former epoch.
void DeviceInput::bring_order(Stream& stream, std::uint64_t epoch) {
  const std::size_t index = static_cast<std::size_t>(epoch % set_.epochs);
  Row& row = *rows_[index];
  if (row.filled && row.epoch == epoch) return;
  const EpochOrders::Order order = orders_->get(epoch);
  const std::span<std::uint32_t> host{
      static_cast<std::uint32_t*>(host_rows_.get()) + index * set_.size, set_.size};
  row.copied.synchronize();  // of epochs ago: done long since
  std::ranges::copy(*order, host.begin());
  copy_to_device(stream, device_rows_.subspan(index * set_.size, set_.size),
                 std::span<const std::uint32_t>(host));
  row.copied.record(stream);
  row.epoch = epoch;
  row.filled = true;
}

template <class T>
void DeviceInput::make(Stream& stream, const Batch& batch, const std::uint8_t* records, T* images,
                       std::int32_t* labels) {
  TrainingSet set = set_;
  if (records != nullptr) {
    set = {.records = records, .size = static_cast<std::uint32_t>(batch.size), .seed = seed_};
  } else {
    const std::uint64_t last = batch.position + static_cast<std::uint64_t>(batch.size) - 1;
    for (std::uint64_t epoch = batch.position / set.size; epoch <= last / set.size; ++epoch)
      bring_order(stream, epoch);
  }
  training_batch(stream, set, batch.position, batch.size, images, labels);
}

#define TOWERS_INSTANTIATE(T) \
  template void DeviceInput::make(Stream&, const Batch&, const std::uint8_t*, T*, std::int32_t*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
