#pragma once
// One GPU's share of a training run: a replica of the variables and the towers placed there, which
// run one after the other and are summed here before anything crosses to other GPUs.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/variables.h"
#include "cuda/input.h"
#include "cuda/plan.h"
#include "cuda/runtime.h"
#include "cuda/update_math.h"

namespace towers::cuda {

struct RankOptions {
  PlanOptions plan;
  int device = 0;                 // CUDA ordinal
  std::vector<int> towers;        // of the run, ascending
  int ranks = 1, all_towers = 1;  // of all processes
  // Where sums run in the order of all towers: the most towers that any rank has, else 0.
  int kept_towers = 0;
};

// What a step left behind, in host memory.
struct RankReport {
  std::uint64_t trouble = kNoTrouble;
  std::vector<float> cross_entropies;  // of the rank's towers
  std::vector<float> squares;          // of each piece, of the variables before the update
};

// Variables are stored as T for the layers; what is summed, averaged and updated is wide.
template <class T>
class Rank {
 public:
  Rank(const Net& net, const VariableLayout& layout, const std::vector<Piece>& pieces,
       const RankOptions& options);

  const std::vector<int>& towers() const { return options_.towers; }
  Stream& compute() { return compute_; }
  Stream& reduction() { return reduction_; }
  void check();        // throws Error where the GPU has failed; does not wait
  float loss_scale();  // of the step enqueued last; waits for the compute stream
  // Whether updates are launched as graphs. False where CUDA does not tell which part of a captured
  // graph the update is: then every update is enqueued by itself, which takes longer.
  bool captures_updates() const { return captures_updates_; }
  const std::vector<Bucket>& buckets() const { return plan_->buckets(); }

  // Batches of `form` may come from now on (Towers::make_input); after drop_input images alone may.
  bool has_room_for(const TrainingRecords& set) const {
    return DeviceInput::fits(options_.device, set, options_.plan.batch_size);
  }
  void drop_input() { maker_.reset(); }
  void make_input(InputForm form, const TrainingRecords& set,
                  const std::shared_ptr<EpochOrders>& orders);
  // Enqueues one tower's input and passes; `index` counts this rank's towers, in order. What
  // nothing but the update waits for may be enqueued along with that.
  void compute_gradients(std::size_t index, const Batch& batch, std::int64_t step);
  // Lets the reduction stream wait for a bucket of this rank's sum, of the step enqueued last.
  void wait_for_bucket(std::size_t bucket);
  // With kept_towers, once. places: of each tower, its index in `gathered`, which holds kept_towers
  // of each rank.
  void order_towers(const std::vector<std::size_t>& places);
  // Sums all towers' gradients in their order, on the reduction stream, once `gathered` is
  // complete.
  void sum_in_order();
  // Lets the compute stream wait for all that the reduction stream has been given.
  void finish_reduction();
  void apply_gradients(float learning_rate, float average_decay, std::int64_t step);
  // The host waits until the batches of the step enqueued last have been read, where they came from
  // its memory.
  void wait_for_copies();
  bool copies_done();

  // These wait for the compute stream, the last one for its copies.
  RankReport report();
  void read(std::span<const Wide<T>> device, std::span<float> out);
  // False where the net has no such convolution or dense layer.
  bool read_activations(const std::string& layer, std::vector<float>& out);
  void write_variables(std::span<const float> variables, std::span<const float> averages);

  // Device memory, flat. own: sum over this rank's towers. sum: over all towers, which is `own`
  // itself where this is the only rank. mean: with weight decay, written by apply_gradients.
  std::span<Wide<T>> variables, averages, own, sum, mean;
  // With kept_towers alone: this rank's towers' gradients one by one, and those of all ranks.
  std::span<Wide<T>> kept, gathered;

 private:
  // Batches arrive in two slots in turn, so that one is brought in while the other is computed on.
  struct Slot {
    explicit Slot(int device) : copied(device), ready(device), consumed(device) {}
    std::span<T> images;
    std::span<std::int32_t> labels;
    std::span<std::uint8_t> records;  // of batches that come as records
    Event copied;                     // the host's batch has been read
    Event ready;                      // images and labels are whole
    Event consumed;                   // the passes have read them
    std::vector<Graph> parts;
    Graph step;  // where alone() on the only rank: all parts and the update
  };

  // One tower's gradients are the rank's, where they lie.
  bool alone() const { return options_.towers.size() == 1 && options_.kept_towers == 0; }
  void enqueue_part(const Slot& slot, std::size_t part);
  void bring_in(Slot& slot, const Batch& batch);
  void capture();
  void write_first_state();
  // Whether passes and update are one graph: nothing comes between them.
  bool whole_steps() const { return alone() && options_.ranks == 1 && captures_updates_; }
  // Enqueues the passes that compute_gradients has left for the update.
  void finish_passes();
  UpdateArguments<T> update_arguments(float learning_rate, float average_decay,
                                      std::int64_t step) const;

  RankOptions options_;
  std::size_t image_size_;
  Stream compute_, input_, reduction_;
  Event reduced_;
  std::vector<std::unique_ptr<Event>> bucket_ready_;
  DeviceMemory memory_;
  std::span<Piece> pieces_;
  std::span<T> working_;
  std::span<Wide<T>> tower_gradients_;  // `own` itself where alone()
  std::span<float> cross_entropies_, squares_;
  float* cross_entropy_ = nullptr;  // of the tower under way
  std::span<std::uint64_t> trouble_;
  std::span<LossScale> loss_scale_;  // of float16, else empty
  std::span<const Wide<T>*> towers_in_order_;
  std::unique_ptr<Plan<T>> plan_;
  std::unique_ptr<DeviceInput> maker_;  // null: batches are images
  std::span<float> arrivals_;           // of images from the host; empty where T is float
  Graph update_;
  bool captures_updates_ = false;
  bool passes_left_ = false;  // of the last slot, for the update
  std::array<Slot, 2> slots_;
  std::size_t next_slot_ = 0, last_slot_ = 0;
};

}  // namespace towers::cuda
