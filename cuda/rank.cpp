#include "cuda/rank.h"

#include "cuda/host_images.h"
#include "cuda/host_values.h"
#include "cuda/kernels.h"
#include "cuda/working_copy.h"

namespace towers::cuda {

template <class T>
Rank<T>::Rank(const Net& net, const VariableLayout& layout, const std::vector<Piece>& pieces,
              const RankOptions& options)
    : options_(options),
      image_size_(net.input.size()),
      compute_(options.device),
      input_(options.device),
      reduction_(options.device),
      reduced_(options.device),
      memory_(options.device),
      slots_{Slot(options.device), Slot(options.device)} {
  const std::size_t size = layout.size();
  variables = memory_.allocate<Wide<T>>(size);
  working_ = allocate_working<T>(memory_, variables);
  averages = memory_.allocate<Wide<T>>(size);
  mean = memory_.allocate<Wide<T>>(size);
  own = memory_.allocate<Wide<T>>(size);
  sum = options.ranks > 1 ? memory_.allocate<Wide<T>>(size) : own;
  tower_gradients_ = alone() ? own : memory_.allocate<Wide<T>>(size);

  const std::size_t kept_size = static_cast<std::size_t>(options.kept_towers) * size;
  kept = memory_.allocate<Wide<T>>(kept_size);
  gathered = memory_.allocate<Wide<T>>(kept_size * static_cast<std::size_t>(options.ranks));
  if (kept_size != 0)
    towers_in_order_ =
        memory_.allocate<const Wide<T>*>(static_cast<std::size_t>(options.all_towers));

  pieces_ = memory_.allocate<Piece>(pieces.size());
  squares_ = memory_.allocate<float>(pieces.size());
  cross_entropies_ = memory_.allocate<float>(options.towers.size());
  cross_entropy_ = alone() ? cross_entropies_.data() : memory_.allocate<float>(1).data();
  trouble_ = memory_.allocate<std::uint64_t>(1);
  if constexpr (kScaled<T>) loss_scale_ = memory_.allocate<LossScale>(1);
  copy_to_device(compute_, pieces_, std::span<const Piece>(pieces));
  write_first_state();

  plan_ = std::make_unique<Plan<T>>(
      net, layout, options.plan,
      PlanMemory<T>{working_.data(), variables.data(), tower_gradients_.data(), cross_entropy_,
                    loss_scale_.data()},
      compute_);
  for (std::size_t b = 0; b < buckets().size(); ++b)
    bucket_ready_.push_back(std::make_unique<Event>(options.device));

  const std::size_t batch = static_cast<std::size_t>(options.plan.batch_size);
  arrivals_ = allocate_arrivals<T>(memory_, batch * image_size_);
  for (Slot& slot : slots_) {
    slot.images = memory_.allocate<T>(batch * image_size_);
    slot.labels = memory_.allocate<std::int32_t>(batch);
  }
  capture();
}

template <class T>
void Rank<T>::check() {
  compute_.done();
  reduction_.done();
}

template <class T>
void Rank<T>::enqueue_part(const Slot& slot, std::size_t part) {
  if (part == 0) plan_->forward(compute_, slot.images.data());
  plan_->backward(compute_, slot.images.data(), slot.labels.data(), part);
}

template <class T>
void Rank<T>::capture() {
  const DeviceGuard guard(options_.device);
  const auto enqueue_parts = [&](const Slot& slot) {
    for (std::size_t part = 0; part < buckets().size(); ++part) enqueue_part(slot, part);
  };
  const UpdateArguments<T> none = update_arguments(0, 1, 0);
  const auto enqueue_update = [&] { update(compute_, none); };
  // Once for real, on zeros: libraries may load code at the first call, which capturing forbids.
  enqueue_parts(slots_[0]);
  enqueue_update();
  write_first_state();
  update_ = Graph::capture(compute_, enqueue_update);
  captures_updates_ = set_update(update_, none);
  for (Slot& slot : slots_) {
    for (std::size_t part = 0; part < buckets().size(); ++part)
      slot.parts.push_back(Graph::capture(compute_, [&] { enqueue_part(slot, part); }));
    if (!alone() || options_.ranks > 1) continue;
    slot.step = Graph::capture(compute_, [&] {
      enqueue_parts(slot);
      enqueue_update();
    });
    captures_updates_ = set_update(slot.step, none) && captures_updates_;
  }
}

// Of what steps hand on from one to the next, but for the variables.
template <class T>
void Rank<T>::write_first_state() {
  const std::uint64_t none = kNoTrouble;
  copy_to_device(compute_, trouble_, std::span<const std::uint64_t>(&none, 1));
  const LossScale first_scale;
  if constexpr (kScaled<T>)
    copy_to_device(compute_, loss_scale_, std::span<const LossScale>(&first_scale, 1));
  compute_.synchronize();  // which the two are to outlive
}

template <class T>
void Rank<T>::make_input(InputForm form, const TrainingRecords& set,
                         const std::shared_ptr<EpochOrders>& orders) {
  if (form == InputForm::records)
    for (Slot& slot : slots_) {
      if (!slot.records.empty()) continue;
      slot.records = memory_.allocate<std::uint8_t>(
          static_cast<std::size_t>(options_.plan.batch_size) * kRecordBytes);
    }
  maker_ =
      std::make_unique<DeviceInput>(options_.device, form, set, options_.plan.batch_size, orders);
}

template <class T>
void Rank<T>::bring_in(Slot& slot, const Batch& batch) {
  input_.wait(slot.consumed);
  const std::size_t size = static_cast<std::size_t>(batch.size);
  if (batch.images != nullptr) {
    copy_images(input_, batch.images, size * image_size_, arrivals_, slot.images.data());
    copy_to_device(input_, slot.labels.data(), batch.labels, size * sizeof(std::int32_t));
    slot.copied.record(input_);
    convert_images(input_, size * image_size_, arrivals_, slot.images.data());
  } else {
    if (batch.records != nullptr) {
      copy_to_device(input_, slot.records.data(), batch.records, size * kRecordBytes);
      slot.copied.record(input_);
    }
    maker_->make(input_, batch, batch.records != nullptr ? slot.records.data() : nullptr,
                 slot.images.data(), slot.labels.data());
  }
  slot.ready.record(input_);
  compute_.wait(slot.ready);
}

template <class T>
void Rank<T>::compute_gradients(std::size_t index, const Batch& batch, std::int64_t step) {
  finish_passes();  // of a batch that no update has followed
  last_slot_ = next_slot_;
  next_slot_ = 1 - next_slot_;
  Slot& slot = slots_[last_slot_];
  bring_in(slot, batch);
  passes_left_ = true;
  if (whole_steps()) return;
  finish_passes();
  if (alone()) return;

  copy_on_device(compute_, &cross_entropies_[index], cross_entropy_, sizeof(float));
  const std::size_t size = tower_gradients_.size();
  const bool keep = options_.kept_towers > 0;
  accumulate_gradients(compute_, pieces_.data(), static_cast<int>(pieces_.size()),
                       keep || index == 0, step, options_.towers[index], tower_gradients_.data(),
                       keep ? kept.data() + index * size : own.data(), loss_scale_.data(),
                       trouble_.data());
  if (index + 1 == options_.towers.size())
    for (const auto& ready : bucket_ready_) ready->record(compute_);
}

template <class T>
void Rank<T>::finish_passes() {
  if (!passes_left_) return;
  Slot& slot = slots_[last_slot_];
  for (std::size_t part = 0; part < slot.parts.size(); ++part) {
    slot.parts[part].launch(compute_);
    if (alone() && options_.ranks > 1) bucket_ready_[part]->record(compute_);
  }
  slot.consumed.record(compute_);
  passes_left_ = false;
}

template <class T>
void Rank<T>::order_towers(const std::vector<std::size_t>& places) {
  std::vector<const Wide<T>*> towers;
  for (const std::size_t place : places) towers.push_back(gathered.data() + place * own.size());
  copy_to_device(reduction_, towers_in_order_, std::span<const Wide<T>* const>(towers));
  reduction_.synchronize();
}

template <class T>
void Rank<T>::sum_in_order() {
  sum_towers(reduction_, pieces_.data(), static_cast<int>(pieces_.size()), towers_in_order_.data(),
             options_.all_towers, sum.data());
}

template <class T>
void Rank<T>::wait_for_bucket(std::size_t bucket) {
  reduction_.wait(*bucket_ready_[bucket]);
}

template <class T>
void Rank<T>::finish_reduction() {
  reduced_.record(reduction_);
  compute_.wait(reduced_);
}

template <class T>
void Rank<T>::apply_gradients(float learning_rate, float average_decay, std::int64_t step) {
  const UpdateArguments<T> a = update_arguments(learning_rate, average_decay, step);
  const DeviceGuard guard(options_.device);
  if (!captures_updates_) {
    update(compute_, a);
  } else if (passes_left_) {
    Slot& slot = slots_[last_slot_];
    set_update(slot.step, a);
    slot.step.launch(compute_);
    slot.consumed.record(compute_);
    passes_left_ = false;
  } else {
    set_update(update_, a);
    update_.launch(compute_);
  }
}

template <class T>
UpdateArguments<T> Rank<T>::update_arguments(float learning_rate, float average_decay,
                                             std::int64_t step) const {
  UpdateArguments<T> a;
  a.pieces = pieces_.data();
  a.piece_count = static_cast<int>(pieces_.size());
  a.step = step;
  a.gradient = sum.data();
  a.gradient_scale = 1 / static_cast<Wide<T>>(options_.all_towers);
  a.loss_scale = loss_scale_.data();
  a.own_gradient = alone() ? own.data() : nullptr;
  a.own_tower = options_.towers[0];
  a.cross_entropies = cross_entropies_.data();
  a.tower_count = static_cast<int>(options_.towers.size());
  a.first_tower = options_.towers[0];
  // Placement goes round the devices, so a rank's towers are evenly apart.
  a.tower_stride = options_.towers.size() > 1 ? options_.towers[1] - options_.towers[0] : 1;
  a.learning_rate = learning_rate;
  a.average_weight = Wide<T>{1} - average_decay;
  a.mean = mean.data();
  a.variables = variables.data();
  a.averages = averages.data();
  a.working = working_.data();
  a.squares = squares_.data();
  a.trouble = trouble_.data();
  return a;
}

template <class T>
void Rank<T>::wait_for_copies() {
  slots_[last_slot_].copied.synchronize();
}

template <class T>
bool Rank<T>::copies_done() {
  return slots_[last_slot_].copied.done();
}

template <class T>
RankReport Rank<T>::report() {
  finish_passes();
  RankReport report;
  report.cross_entropies.resize(cross_entropies_.size());
  report.squares.resize(squares_.size());
  copy_to_host(compute_, &report.trouble, trouble_.data(), sizeof report.trouble);
  copy_to_host(compute_, report.cross_entropies.data(), cross_entropies_.data(),
               cross_entropies_.size_bytes());
  copy_to_host(compute_, report.squares.data(), squares_.data(), squares_.size_bytes());
  compute_.synchronize();
  return report;
}

template <class T>
void Rank<T>::read(std::span<const Wide<T>> device, std::span<float> out) {
  finish_passes();
  read_as_floats(compute_, device, out);
}

template <class T>
bool Rank<T>::read_activations(const std::string& layer, std::vector<float>& out) {
  finish_passes();
  return plan_->read_activations(compute_, layer, out);
}

template <class T>
float Rank<T>::loss_scale() {
  if constexpr (!kScaled<T>) return 1;
  finish_passes();
  LossScale scale;
  copy_to_host(compute_, &scale, loss_scale_.data(), sizeof scale);
  compute_.synchronize();
  return scale.scale;
}

template <class T>
void Rank<T>::write_variables(std::span<const float> new_variables,
                              std::span<const float> new_averages) {
  finish_passes();  // with the variables that they were meant for
  write_floats(compute_, new_variables, variables);
  write_floats(compute_, new_averages, averages);
  copy_to_working(compute_, std::span<const Wide<T>>(variables), working_);
}

#define TOWERS_INSTANTIATE(T) template class Rank<T>;
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
