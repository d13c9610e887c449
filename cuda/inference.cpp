#include "cuda/inference.h"

#include <stdexcept>

namespace towers::cuda {

CudaInference::CudaInference(const Net& net, int batch_size, int device, bool allow_tf32)
    : layout_(net),
      batch_size_(batch_size),
      image_size_(net.input.size()),
      classes_(static_cast<std::size_t>(net.classes)),
      stream_(device),
      memory_(device),
      variables_(memory_.allocate<float>(layout_.size())),
      images_(memory_.allocate<float>(static_cast<std::size_t>(batch_size) * image_size_)),
      plan_(net, layout_,
            {.batch_size = batch_size, .allow_tf32 = allow_tf32, .deterministic = true},
            {.variables = variables_.data()}, stream_) {}

void CudaInference::write_variables(std::span<const float> variables) {
  copy_to_device(stream_, variables_, variables);
  stream_.synchronize();
}

void CudaInference::logits(const Batch& batch, std::span<float> logits) {
  const std::size_t size = static_cast<std::size_t>(batch.size);
  if (batch.size < 0 || batch.size > batch_size_ || logits.size() < size * classes_)
    throw std::invalid_argument("a batch is larger than the compiled size");
  const DeviceGuard guard(stream_.device());
  // Images beyond the batch are an earlier one's: nothing crosses from image to image.
  copy_to_device(stream_, images_.data(), batch.images, size * image_size_ * sizeof(float));
  plan_.forward(stream_, images_.data());
  copy_to_host(stream_, logits.data(), plan_.logits(), size * classes_ * sizeof(float));
  stream_.synchronize();
}

}  // namespace towers::cuda
