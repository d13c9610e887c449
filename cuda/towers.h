#pragma once
// Training on GPUs. A rank here is NCCL's: one GPU in use, of this process or of another, where
// app/ calls the processes ranks. Towers are spread over this process's, gradients summed over all.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/communication_thread.h"
#include "core/variables.h"
#include "cuda/all_reduce.h"
#include "cuda/rank.h"
#include "cuda/spread.h"

namespace towers::cuda {

// In the precision that T stores.
template <class T>
class CudaTowers final : public Towers {
 public:
  // engines: while it compiles.
  CudaTowers(const Net& net, const CompileOptions& options, bool allow_tf32, EngineCache* engines);
  ~CudaTowers() override;

  // Rank::captures_updates of all.
  bool captures_updates() const {
    return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->captures_updates(); });
  }

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
  void make_ranks(const CompileOptions& options, bool allow_tf32, EngineCache* engines);
  void join_ranks();
  void order_towers();
  // Until `done` is so, looking for ranks that have failed, which would never let it be.
  template <class Done>
  void wait_for_ranks(const Done& done);
  void wait_for_sums();
  void exchange_gradients();
  void sum_buckets();
  void sum_in_order();
  std::vector<Stream*> reduction_streams() const;
  std::vector<double> squares_of_variables(const RankReport& report);
  // Brings in those of other processes; the first trouble of all.
  std::uint64_t gather_reports(std::uint64_t trouble);
  void fill_losses(const RankReport& report);
  Rank<T>& first() { return *ranks_.front(); }

  Net net_;
  VariableLayout layout_;
  int batch_size_, classes_;
  std::shared_ptr<CommunicationThread> processes_;  // null: there is no other
  Spread spread_;
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<Rank<T>>> ranks_;     // of this process
  std::size_t last_rank_ = 0;                       // of its last tower
  bool in_order_;                                   // sums run in the order of towers
  std::unique_ptr<AllReduce<Wide<T>>> all_reduce_;  // of two or more ranks
  std::map<std::string, std::vector<float>> kept_;  // activations that were asked for
  InputForm form_ = InputForm::images;
  std::vector<float> cross_entropies_;  // of all towers
  StepReport report_;
  bool reported_ = false;   // report_ is of what was enqueued last
  std::int64_t steps_ = 0;  // enqueued in full
  bool applied_ = false;    // since compute_gradients
  bool keep_activations_ = false;
};

}  // namespace towers::cuda
