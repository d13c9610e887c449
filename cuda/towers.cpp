#include "cuda/towers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "core/agreement.h"
#include "core/error.h"
#include "cuda/range.h"
#include "cuda/variable_pieces.h"

namespace towers::cuda {

template <class T>
CudaTowers<T>::CudaTowers(const Net& net, const CompileOptions& options, bool allow_tf32,
                          EngineCache* engines)
    : net_(net),
      layout_(net),
      batch_size_(options.batch_size),
      classes_(net.classes),
      processes_(options.ranks),
      spread_(spread_over_processes(options.device_of_tower, processes_.get())),
      pieces_(cut_into_pieces(layout_)),
      in_order_(options.deterministic && spread_.gpus.size() > 1),
      cross_entropies_(static_cast<std::size_t>(spread_.towers)) {
  if (spread_.towers > kMostTowers)
    throw UsageError("GPUs take at most " + std::to_string(kMostTowers) +
                     " towers in all, and --num_gpus makes " + std::to_string(spread_.towers) +
                     " over all processes");
  make_ranks(options, allow_tf32, engines);
  if (spread_.gpus.size() > 1) join_ranks();

  std::size_t decayed = 0;
  for (const Variable& v : layout_.variables()) decayed += v.weight_decay != 0;
  report_.towers.resize(cross_entropies_.size());
  for (Losses& losses : report_.towers) losses.weight_losses.resize(decayed);
}

template <class T>
void CudaTowers<T>::make_ranks(const CompileOptions& options, bool allow_tf32,
                               EngineCache* engines) {
  const std::size_t gpus = spread_.gpus.size();
  for (std::size_t g = spread_.first_gpu; g < spread_.first_gpu + spread_.own_gpus; ++g) {
    RankOptions rank;
    rank.plan = {.batch_size = batch_size_,
                 .allow_tf32 = allow_tf32,
                 .deterministic = options.deterministic,
                 .direct = options.convolution == "direct",
                 .engines = engines};
    rank.device = spread_.gpus[g].device;
    rank.towers = spread_.gpus[g].towers;
    rank.ranks = static_cast<int>(gpus);
    rank.all_towers = spread_.towers;
    if (in_order_) rank.kept_towers = spread_.most;
    // One tower's gradients cross the GPUs while the rest of its backward pass runs.
    rank.plan.buckets = gpus > 1 && spread_.most == 1 && !in_order_;
    if (rank.towers.back() == spread_.first_tower + spread_.own_towers - 1)
      last_rank_ = ranks_.size();
    ranks_.push_back(std::make_unique<Rank<T>>(net_, layout_, pieces_, rank));
  }
}

template <class T>
void CudaTowers<T>::join_ranks() {
  require_nccl();
  GpuGroup group{.id = {},
                 .gpus = static_cast<int>(spread_.gpus.size()),
                 .first = static_cast<int>(spread_.first_gpu)};
  if (!processes_ || processes_->rank() == 0) group.id = make_group_id();
  std::vector<int> devices;
  for (const auto& rank : ranks_) devices.push_back(rank->compute().device());
  if (processes_) {
    // Whatever one of them lacked, all know of it from here on: NCCL waits for all of them.
    processes_->run([&](Collective& collective) {
      agree(collective, 0);
      collective.broadcast(group.id, 0);
    });
    processes_->stay_awake();
    processes_->set_awaited_elsewhere(true);
  }
  all_reduce_ = make_all_reduce<Wide<T>>(devices, group);
  if (in_order_) order_towers();
  // Once for nothing: NCCL connects GPUs at the first exchange of each kind and size, in a call
  // that waits for the other processes and would not hear in a step that one of them has failed.
  exchange_gradients();
  wait_for_sums();
  if (processes_) processes_->set_awaited_elsewhere(false);
}

template <class T>
void CudaTowers<T>::order_towers() {
  std::vector<std::size_t> places(cross_entropies_.size());  // of each tower, in what is gathered
  for (std::size_t g = 0; g < spread_.gpus.size(); ++g)
    for (std::size_t i = 0; i < spread_.gpus[g].towers.size(); ++i)
      places[static_cast<std::size_t>(spread_.gpus[g].towers[i])] =
          g * static_cast<std::size_t>(spread_.most) + i;
  for (const auto& rank : ranks_) rank->order_towers(places);
}

// NCCL's communicator must not go while a sum is under way. Memory waits by itself.
template <class T>
CudaTowers<T>::~CudaTowers() {
  try {
    if (all_reduce_) wait_for_sums();
  } catch (const Error&) {
    // What failed has been reported by the call that met it, here or on another rank.
  }
}

// A GPU, a link or a process that fails leaves the other ranks' kernels waiting for ever, and with
// them a host that synchronises. NCCL tells of links and processes, but never looks at a GPU's own
// error: that is told by calls for this GPU alone.
template <class T>
template <class Done>
void CudaTowers<T>::wait_for_ranks(const Done& done) {
  try {
    while (!done()) {
      for (const auto& rank : ranks_) rank->check();
      all_reduce_->check();
      if (processes_ && processes_->failed()) processes_->wait();  // throws why
      std::this_thread::yield();
    }
  } catch (const Error&) {
    all_reduce_->abandon();
    throw;
  }
}

template <class T>
void CudaTowers<T>::wait_for_sums() {
  for (const auto& rank : ranks_) wait_for_ranks([&] { return rank->reduction().done(); });
}

template <class T>
void CudaTowers<T>::check(std::span<const Batch> batches) const {
  if (batches.size() != static_cast<std::size_t>(spread_.own_towers))
    throw std::invalid_argument("compute_gradients needs one batch per tower");
  for (const Batch& batch : batches) {
    if (batch.size != batch_size_)
      throw std::invalid_argument("a batch differs from the compiled size");
    const InputForm form = batch.images != nullptr    ? InputForm::images
                           : batch.records != nullptr ? InputForm::records
                                                      : InputForm::positions;
    if (form != InputForm::images && form != form_)
      throw std::invalid_argument("a batch comes in a form that make_input was not told");
    check_labels(batch, classes_);
  }
}

template <class T>
bool CudaTowers<T>::make_input(InputForm form, const TrainingRecords& set) {
  check_training_records(net_, set);
  // An earlier set, of another session, leaves its room to this one.
  form_ = InputForm::images;
  for (const auto& rank : ranks_) rank->drop_input();
  if (form == InputForm::positions)
    for (const auto& rank : ranks_)
      if (!rank->has_room_for(set)) return false;
  const auto orders = std::make_shared<EpochOrders>(
      set.seed, static_cast<std::uint32_t>(set.records.size() / kRecordBytes));
  for (const auto& rank : ranks_) rank->make_input(form, set, orders);
  form_ = form;
  return true;
}

template <class T>
void CudaTowers<T>::compute_gradients(std::span<const Batch> batches, bool keep_activations) {
  if (report_.non_finite) return;
  const Range range("towers: compute_gradients");
  check(batches);
  keep_activations_ = keep_activations;
  applied_ = reported_ = false;
  for (const auto& rank : ranks_) {
    const DeviceGuard guard(rank->compute().device());
    for (std::size_t i = 0; i < rank->towers().size(); ++i)
      rank->compute_gradients(
          i, batches[static_cast<std::size_t>(rank->towers()[i] - spread_.first_tower)], steps_);
  }
}

template <class T>
void CudaTowers<T>::average_gradients() {
  if (report_.non_finite || !all_reduce_) return;
  const Range range("towers: average_gradients");
  exchange_gradients();
}

template <class T>
void CudaTowers<T>::exchange_gradients() {
  if (in_order_)
    sum_in_order();
  else
    sum_buckets();
  for (const auto& rank : ranks_) rank->finish_reduction();
}

// Each bucket crosses the GPUs as soon as the backward pass has filled it.
template <class T>
void CudaTowers<T>::sum_buckets() {
  std::vector<const Wide<T>*> send(ranks_.size());
  std::vector<Wide<T>*> receive(ranks_.size());
  const std::vector<Stream*> streams = reduction_streams();
  const std::vector<Bucket>& buckets = first().buckets();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r]->wait_for_bucket(b);
      send[r] = ranks_[r]->own.data() + buckets[b].begin;
      receive[r] = ranks_[r]->sum.data() + buckets[b].begin;
    }
    all_reduce_->sum(send, receive, buckets[b].end - buckets[b].begin, streams);
  }
}

// Every rank gets every tower's gradients and adds them in the order of towers, so that the sum
// does not depend on how many GPUs there are.
template <class T>
void CudaTowers<T>::sum_in_order() {
  std::vector<const Wide<T>*> send;
  std::vector<Wide<T>*> receive;
  for (const auto& rank : ranks_) {
    for (std::size_t b = 0; b < rank->buckets().size(); ++b) rank->wait_for_bucket(b);
    send.push_back(rank->kept.data());
    receive.push_back(rank->gathered.data());
  }
  all_reduce_->gather(send, receive, first().kept.size(), reduction_streams());
  for (const auto& rank : ranks_) rank->sum_in_order();
}

template <class T>
std::vector<Stream*> CudaTowers<T>::reduction_streams() const {
  std::vector<Stream*> streams;
  for (const auto& rank : ranks_) streams.push_back(&rank->reduction());
  return streams;
}

template <class T>
void CudaTowers<T>::apply_gradients(float learning_rate, float average_decay) {
  if (report_.non_finite) return;
  const Range range("towers: apply_gradients");
  for (const auto& rank : ranks_) rank->apply_gradients(learning_rate, average_decay, steps_);
  ++steps_;
  applied_ = true;
  reported_ = false;
  for (const auto& rank : ranks_) {
    if (all_reduce_)
      wait_for_ranks([&] { return rank->copies_done(); });
    else
      rank->wait_for_copies();
  }
}

template <class T>
const StepReport& CudaTowers<T>::report() {
  if (report_.non_finite || reported_) return report_;
  const Range range("towers: report, waits for the GPUs");
  // Other processes may wait for sums as well, and not hear what is wrong here.
  if (processes_) processes_->set_awaited_elsewhere(true);
  if (all_reduce_) wait_for_sums();
  std::vector<RankReport> reports;
  std::uint64_t trouble = kNoTrouble;
  for (const auto& rank : ranks_) {
    reports.push_back(rank->report());
    trouble = std::min(trouble, reports.back().trouble);
    for (std::size_t i = 0; i < rank->towers().size(); ++i)
      cross_entropies_[static_cast<std::size_t>(rank->towers()[i])] =
          reports.back().cross_entropies[i];
  }
  if (processes_) {
    processes_->set_awaited_elsewhere(false);
    trouble = gather_reports(trouble);
  }
  fill_losses(reports.front());
  reported_ = true;
  if (!applied_) return report_;
  if (trouble != kNoTrouble) report_.non_finite = non_finite_of(layout_, trouble);
  for (std::size_t t = 0; t < report_.towers.size() && !report_.non_finite; ++t)
    if (!std::isfinite(report_.towers[t].total))
      report_.non_finite = NonFinite{static_cast<int>(t), "", steps_ - 1};
  return report_;
}

// Sums of squares of each variable, as they were when the losses were computed.
template <class T>
std::vector<double> CudaTowers<T>::squares_of_variables(const RankReport& report) {
  std::vector<double> squares(layout_.variables().size());
  if (applied_) {
    for (std::size_t p = 0; p < pieces_.size(); ++p)
      squares[pieces_[p].variable] += double{report.squares[p]};
    return squares;
  }
  std::vector<float> values(layout_.size());
  read_variables(values);
  for (std::size_t v = 0; v < squares.size(); ++v)
    for (const float value : view(std::span<const float>(values), layout_.variables()[v]))
      squares[v] += double{value} * double{value};
  return squares;
}

template <class T>
std::uint64_t CudaTowers<T>::gather_reports(std::uint64_t trouble) {
  std::vector<std::uint64_t> troubles(static_cast<std::size_t>(processes_->ranks()));
  troubles[static_cast<std::size_t>(processes_->rank())] = trouble;
  processes_->run([&](Collective& collective) {
    agree(collective, 0);
    gather_equal(collective, std::as_writable_bytes(std::span(cross_entropies_)));
    gather_equal(collective, std::as_writable_bytes(std::span(troubles)));
  });
  return *std::min_element(troubles.begin(), troubles.end());
}

// `report`: of any rank, for all have the same variables.
template <class T>
void CudaTowers<T>::fill_losses(const RankReport& report) {
  const std::vector<double> squares = squares_of_variables(report);
  std::vector<float> weight_losses;
  double weight_loss = 0;
  for (std::size_t v = 0; v < squares.size(); ++v) {
    const double decay = layout_.variables()[v].weight_decay;
    if (decay == 0) continue;
    weight_losses.push_back(static_cast<float>(decay * squares[v] / 2));
    weight_loss += decay * squares[v] / 2;
  }
  for (std::size_t t = 0; t < cross_entropies_.size(); ++t) {
    Losses& losses = report_.towers[t];
    losses.cross_entropy = cross_entropies_[t];
    losses.weight_losses = weight_losses;
    losses.total = static_cast<float>(double{losses.cross_entropy} + weight_loss);
  }
}

template <class T>
void CudaTowers<T>::read_variables(std::span<float> out) {
  first().read(first().variables, out);
}

template <class T>
void CudaTowers<T>::read_moving_averages(std::span<float> out) {
  first().read(first().averages, out);
}

template <class T>
void CudaTowers<T>::read_gradients(std::span<float> out) {
  if (applied_) return first().read(first().mean, out);
  // The update has not added the weight decay yet.
  std::vector<float> values(layout_.size());
  first().read(first().variables, values);
  first().read(first().sum, out);
  const float scale = static_cast<float>(spread_.towers) * first().loss_scale();
  for (const Variable& v : layout_.variables())
    for (std::size_t i = v.offset; i < v.offset + v.size; ++i)
      out[i] = out[i] / scale + static_cast<float>(v.weight_decay) * values[i];
}

template <class T>
void CudaTowers<T>::write_variables(std::span<const float> variables,
                                    std::span<const float> moving_averages) {
  std::vector<float> values(layout_.size()), averages(layout_.size());  // zeros between variables
  for (const Variable& v : layout_.variables()) {
    std::copy_n(variables.data() + v.offset, v.size, values.data() + v.offset);
    std::copy_n(moving_averages.data() + v.offset, v.size, averages.data() + v.offset);
  }
  for (const auto& rank : ranks_) rank->write_variables(values, averages);
  reported_ = false;  // before the update, losses are of the variables that are there
}

template <class T>
std::span<const float> CudaTowers<T>::activations(const std::string& layer) {
  std::vector<float>& host = kept_[layer];
  if (!keep_activations_ || !ranks_[last_rank_]->read_activations(layer, host))
    throw std::invalid_argument("no activations were kept of layer " + layer);
  return host;
}

#define TOWERS_INSTANTIATE(T) template class CudaTowers<T>;
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
