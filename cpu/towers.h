#pragma once
// Training on CPU devices.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "cpu/gradient_exchange.h"
#include "cpu/machine.h"
#include "cpu/memory.h"
#include "cpu/number.h"

namespace towers::cpu {

// Of a kind of number (cpu/number.h): Fp32 or Fp64.
template <class Number>
class CpuTowers final : public Towers {
  using Real = typename Number::Real;

 public:
  CpuTowers(std::shared_ptr<Machine> machine, const Net& net, const CompileOptions& options);

  void compute_gradients(std::span<const Batch> batches, bool keep_activations) override;
  void average_gradients() override;
  void apply_gradients(float learning_rate, float average_decay) override;
  const StepReport& report() override { return report_; }
  bool diverged() override { return report_.non_finite.has_value(); }
  void read_variables(std::span<float> out) override;
  void read_moving_averages(std::span<float> out) override;
  void read_gradients(std::span<float> out) override;
  void write_variables(std::span<const float> variables,
                       std::span<const float> moving_averages) override;
  std::span<const float> activations(const std::string& layer) override;

 private:
  // The towers of one device, which run one after the other.
  struct DeviceJob {
    CpuTowers* owner = nullptr;
    std::unique_ptr<typename Number::Plan> plan;
    std::vector<std::size_t> towers;

    void operator()();
  };
  struct Piece {  // of one variable
    std::size_t variable, begin, size;
    NonFiniteSeen seen;
    double squares;
  };

  void check(std::span<const Batch> batches) const;
  std::unique_ptr<GradientExchange> make_exchange(
      const Net& net, const std::shared_ptr<CommunicationThread>& ranks);
  void sum_weight_losses();
  void sum_losses();
  std::optional<NonFinite> find_trouble() const;
  NonFinite name_gradient(std::size_t variable) const;

  std::shared_ptr<Machine> machine_;
  VariableLayout layout_;
  int batch_size_, classes_;
  std::vector<DeviceJob> jobs_;  // of each device of the machine
  std::size_t last_job_ = 0;     // of the last tower
  std::vector<Piece> pieces_;

  Memory memory_;
  std::span<Real> variables_, averages_;
  std::vector<std::span<Real>> gradients_;  // of each tower
  std::vector<const Real*> gradient_pointers_;
  std::span<Real> mean_;                        // of several towers
  std::unique_ptr<GradientExchange> exchange_;  // with other ranks
  std::vector<const Real*> received_pointers_;
  std::size_t first_bucket_layer_ = 0;
  double weight_loss_ = 0;
  StepReport report_;
  std::int64_t good_steps_ = 0;

  // Of the step under way.
  std::span<const Batch> batches_;
  bool keep_activations_ = false;
};

}  // namespace towers::cpu
