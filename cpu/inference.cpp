#include "cpu/inference.h"

#include <algorithm>
#include <stdexcept>

namespace towers::cpu {

template <class Number>
CpuInference<Number>::CpuInference(std::shared_ptr<Machine> machine, const Net& net, int batch_size,
                                   Precision precision, int device)
    : machine_(std::move(machine)),
      layout_(net),
      pool_(machine_->pool(static_cast<std::size_t>(device))),
      batch_size_(batch_size),
      classes_(net.classes),
      variables_(memory_.allocate<typename Number::Real>(layout_.size())),
      plan_(Number::make_plan(net, layout_,
                              {batch_size, false, choose_arithmetic({.precision = precision})},
                              machine_->kernels(), pool_)) {
  const std::lock_guard lock(machine_->mutex());
  pool_.run([&] { plan_->prepare(variables_); });  // zeros, until others are written
}

template <class Number>
void CpuInference<Number>::write_variables(std::span<const float> variables) {
  const std::lock_guard lock(machine_->mutex());
  std::copy_n(variables.data(), layout_.size(), variables_.data());
  pool_.run([&] { plan_->prepare(variables_); });
}

template <class Number>
void CpuInference<Number>::logits(const Batch& batch, std::span<float> logits) {
  const std::size_t values =
      static_cast<std::size_t>(batch.size) * static_cast<std::size_t>(classes_);
  if (batch.size < 0 || batch.size > batch_size_ || logits.size() < values)
    throw std::invalid_argument("a batch is larger than the compiled size");
  const std::lock_guard lock(machine_->mutex());
  pool_.run([&] {
    const auto* from = plan_->logits(batch, false);
    std::transform(from, from + values, logits.data(),
                   [](auto value) { return static_cast<float>(value); });
  });
}

template class CpuInference<Fp32>;
template class CpuInference<Fp64>;

}  // namespace towers::cpu
