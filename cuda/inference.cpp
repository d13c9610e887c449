#include "cuda/inference.h"

#include <stdexcept>

#include "cuda/host_images.h"
#include "cuda/host_values.h"
#include "cuda/working_copy.h"

namespace towers::cuda {

template <class T>
CudaInference<T>::CudaInference(const Net& net, int batch_size, int device, bool allow_tf32,
                                EngineCache* engines)
    : layout_(net),
      batch_size_(batch_size),
      image_size_(net.input.size()),
      classes_(static_cast<std::size_t>(net.classes)),
      stream_(device),
      memory_(device),
      variables_(memory_.allocate<Wide<T>>(layout_.size())),
      working_(allocate_working<T>(memory_, variables_)),
      arrivals_(allocate_arrivals<T>(memory_, static_cast<std::size_t>(batch_size) * image_size_)),
      images_(memory_.allocate<T>(static_cast<std::size_t>(batch_size) * image_size_)),
      plan_(net, layout_,
            {.batch_size = batch_size,
             .allow_tf32 = allow_tf32,
             .deterministic = true,
             .engines = engines},
            {.working = working_.data(), .variables = variables_.data()}, stream_) {}

template <class T>
void CudaInference<T>::write_variables(std::span<const float> variables) {
  write_floats(stream_, variables, variables_);
  copy_to_working(stream_, variables_, working_);
}

template <class T>
void CudaInference<T>::logits(const Batch& batch, std::span<float> logits) {
  const std::size_t size = static_cast<std::size_t>(batch.size);
  if (batch.size < 0 || batch.size > batch_size_ || logits.size() < size * classes_)
    throw std::invalid_argument("a batch is larger than the compiled size");
  const DeviceGuard guard(stream_.device());
  // Images beyond the batch are an earlier one's: nothing crosses from image to image.
  copy_images(stream_, batch.images, size * image_size_, arrivals_, images_.data());
  convert_images(stream_, size * image_size_, arrivals_, images_.data());
  plan_.forward(stream_, images_.data());
  read_as_floats(stream_, std::span<const Wide<T>>(plan_.logits(), size * classes_),
                 logits.first(size * classes_));
}

#define TOWERS_INSTANTIATE(T) template class CudaInference<T>;
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
