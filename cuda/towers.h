#pragma once
// Training on GPUs: one rank per GPU in use, towers over ranks, gradients summed over ranks.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/variables.h"
#include "cuda/all_reduce.h"
#include "cuda/rank.h"

namespace towers::cuda {

// In the precision that T stores.
template <class T>
class CudaTowers final : public Towers {
 public:
  CudaTowers(const Net& net, const CompileOptions& options, bool allow_tf32);
  ~CudaTowers() override;

  bool make_input(InputForm form, const TrainingRecords& set) override;
  void compute_gradients(std::span<const Batch> batches, bool keep_activations) override;
  void average_gradients() override;
  void apply_gradients(float learning_rate, float average_decay) override;
  const StepReport& report() override;
  bool diverged() override { return report_.non_finite.has_value(); }
  void read_variables(std::span<float> out) override;
  void read_moving_averages(std::span<float> out) override;
  void read_gradients(std::span<float> out) override;
  void write_variables(std::span<const float> variables,
                       std::span<const float> moving_averages) override;
  std::span<const float> activations(const std::string& layer) override;

 private:
  void check(std::span<const Batch> batches) const;
  void cut_into_pieces();
  void sum_buckets();
  void sum_in_order();
  std::vector<Stream*> reduction_streams() const;
  std::vector<double> squares_of_variables(const RankReport& report);
  void fill_losses(const std::vector<RankReport>& reports);
  NonFinite name(std::uint64_t trouble) const;
  Rank<T>& first() { return *ranks_.front(); }

  Net net_;
  VariableLayout layout_;
  int batch_size_, classes_, tower_count_;
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<Rank<T>>> ranks_;
  std::size_t last_rank_ = 0;        // of the last tower
  std::vector<std::size_t> places_;  // of each tower, where sums run in the order of towers
  std::unique_ptr<AllReduce<Wide<T>>> all_reduce_;  // of two or more ranks
  std::map<std::string, std::vector<float>> kept_;  // activations that were asked for
  InputForm form_ = InputForm::images;
  StepReport report_;
  bool reported_ = false;   // report_ is of what was enqueued last
  std::int64_t steps_ = 0;  // enqueued in full
  bool applied_ = false;    // since compute_gradients
  bool keep_activations_ = false;
};

}  // namespace towers::cuda
