#include "cpu/towers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/trace.h"

namespace towers::cpu {
namespace {

constexpr std::size_t kPieceSize = 16384;

// Floats cross the seam, whatever is computed in.
template <class From, class To>
void copy_as(const From* from, std::size_t size, To* to) {
  std::transform(from, from + size, to, [](From value) { return static_cast<To>(value); });
}

}  // namespace

template <class Number>
CpuTowers<Number>::CpuTowers(std::shared_ptr<Machine> machine, const Net& net,
                             const CompileOptions& options)
    : machine_(std::move(machine)),
      layout_(net),
      batch_size_(options.batch_size),
      classes_(net.classes),
      jobs_(machine_->devices()),
      variables_(memory_.template allocate<Real>(layout_.size())),
      averages_(memory_.template allocate<Real>(layout_.size())) {
  for (std::size_t t = 0; t < options.device_of_tower.size(); ++t) {
    last_job_ = static_cast<std::size_t>(options.device_of_tower[t]);
    jobs_[last_job_].towers.push_back(t);
    gradients_.push_back(memory_.template allocate<Real>(layout_.size()));
    gradient_pointers_.push_back(gradients_.back().data());
  }
  if (gradients_.size() > 1 || options.ranks)
    mean_ = memory_.template allocate<Real>(layout_.size());
  if (options.ranks) exchange_ = make_exchange(net, options.ranks);
  for (std::size_t d = 0; d < jobs_.size(); ++d) {
    jobs_[d].owner = this;
    if (!jobs_[d].towers.empty())
      jobs_[d].plan =
          Number::make_plan(net, layout_, {batch_size_, true, choose_arithmetic(options)},
                            machine_->kernels(), machine_->pool(d));
  }

  std::size_t decayed = 0;
  for (std::size_t v = 0; v < layout_.variables().size(); ++v) {
    const Variable& variable = layout_.variables()[v];
    if (variable.weight_decay != 0) ++decayed;
    for (std::size_t at = 0; at < variable.size; at += kPieceSize)
      pieces_.push_back({v, variable.offset + at, std::min(kPieceSize, variable.size - at), {}, 0});
  }
  report_.towers.resize(exchange_ ? exchange_->towers() : gradients_.size());
  for (Losses& losses : report_.towers) losses.weight_losses.resize(decayed);
}

// The dense layers behind the last spatial one have most of the variables, and their gradients are
// ready while most of the backward pass is still to come.
template <class Number>
std::unique_ptr<GradientExchange> CpuTowers<Number>::make_exchange(
    const Net& net, const std::shared_ptr<CommunicationThread>& ranks) {
  std::size_t layer = net.layers.size() - 1;
  while (layer > 0 && std::holds_alternative<Dense>(net.layers[layer - 1].op)) --layer;
  first_bucket_layer_ = layer + 1 < net.layers.size() ? layer : 0;
  GradientExchange::Buffers buffers;
  for (const std::span<Real> tower : gradients_)
    buffers.gradients.push_back(std::as_writable_bytes(tower));
  buffers.mean = std::as_writable_bytes(mean_);
  const auto first =
      std::find_if(layout_.variables().begin(), layout_.variables().end(),
                   [&](const Variable& variable) { return variable.layer >= first_bucket_layer_; });
  buffers.first_bucket =
      sizeof(Real) * (first == layout_.variables().end() ? layout_.size() : first->offset);
  const auto mean = [this](const std::byte* towers, std::size_t size, std::byte* out) {
    const std::size_t values = size / sizeof(Real);
    for (std::size_t t = 0; t < received_pointers_.size(); ++t)
      received_pointers_[t] = reinterpret_cast<const Real*>(towers) + t * values;
    Number::average(machine_->kernels(), received_pointers_, 0, values,
                    reinterpret_cast<Real*>(out));
  };
  auto exchange = std::make_unique<GradientExchange>(ranks, std::move(buffers), mean);
  received_pointers_.resize(exchange->towers());
  return exchange;
}

template <class Number>
void CpuTowers<Number>::check(std::span<const Batch> batches) const {
  if (batches.size() != gradients_.size())
    throw std::invalid_argument("compute_gradients needs one batch per tower");
  for (const Batch& batch : batches) {
    if (batch.size != batch_size_)
      throw std::invalid_argument("a batch differs from the compiled size");
    check_labels(batch, classes_);
  }
}

template <class Number>
void CpuTowers<Number>::compute_gradients(std::span<const Batch> batches, bool keep_activations) {
  if (report_.non_finite) return;
  check(batches);
  const std::lock_guard lock(machine_->mutex());
  batches_ = batches;
  keep_activations_ = keep_activations;
  machine_->run_on_each_device(jobs_);
  sum_weight_losses();
  if (!exchange_) sum_losses();
}

template <class Number>
void CpuTowers<Number>::DeviceJob::operator()() {
  if (towers.empty()) return;
  plan->prepare(owner->variables_);
  for (const std::size_t t : towers) {
    const TraceSpan span("tower", static_cast<std::int64_t>(t));
    const bool keep = owner->keep_activations_ && t + 1 == owner->gradients_.size();
    GradientExchange* exchange = owner->exchange_.get();
    const auto layer_done = [this, t](std::size_t layer, double loss) {
      if (layer == owner->first_bucket_layer_) owner->exchange_->first_ready(t, loss);
    };
    const double loss = plan->gradients(owner->batches_[t], keep, owner->gradients_[t],
                                        exchange != nullptr ? LayerDone(layer_done) : LayerDone());
    if (exchange != nullptr)
      exchange->all_ready();
    else
      owner->report_.towers[t].cross_entropy = static_cast<float>(loss);
  }
}

template <class Number>
void CpuTowers<Number>::sum_weight_losses() {
  const auto decay_of = [&](const Piece& piece) {
    return layout_.variables()[piece.variable].weight_decay;
  };
  machine_->for_each(static_cast<int>(pieces_.size()), [&](int task) {
    Piece& piece = pieces_[static_cast<std::size_t>(task)];
    if (decay_of(piece) != 0)
      piece.squares =
          Number::sum_of_squares(machine_->kernels(), piece.size, variables_.data() + piece.begin);
  });

  std::size_t loss = 0;
  weight_loss_ = 0;
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const std::size_t variable = piece->variable;
    const double decay = decay_of(*piece);
    double squares = 0;
    for (; piece != pieces_.end() && piece->variable == variable; ++piece)
      squares += piece->squares;
    if (decay == 0) continue;
    for (Losses& losses : report_.towers)
      losses.weight_losses[loss] = static_cast<float>(decay * squares / 2);
    weight_loss_ += decay * squares / 2;
    ++loss;
  }
}

template <class Number>
void CpuTowers<Number>::sum_losses() {
  for (Losses& losses : report_.towers)
    losses.total = static_cast<float>(static_cast<double>(losses.cross_entropy) + weight_loss_);
}

template <class Number>
void CpuTowers<Number>::average_gradients() {
  if (report_.non_finite) return;
  if (exchange_) {
    exchange_->finish();
    for (std::size_t t = 0; t < report_.towers.size(); ++t)
      report_.towers[t].cross_entropy = static_cast<float>(exchange_->losses()[t]);
    sum_losses();
    return;
  }
  if (gradients_.size() == 1) return;
  const std::lock_guard lock(machine_->mutex());
  machine_->for_each(static_cast<int>(pieces_.size()), [&](int task) {
    const Piece& piece = pieces_[static_cast<std::size_t>(task)];
    Number::average(machine_->kernels(), gradient_pointers_, piece.begin, piece.begin + piece.size,
                    mean_.data());
  });
}

template <class Number>
void CpuTowers<Number>::apply_gradients(float learning_rate, float average_decay) {
  if (report_.non_finite) return;
  const std::lock_guard lock(machine_->mutex());
  const Real* gradient = mean_.empty() ? gradients_[0].data() : mean_.data();
  machine_->for_each(static_cast<int>(pieces_.size()), [&](int task) {
    Piece& piece = pieces_[static_cast<std::size_t>(task)];
    piece.seen = Number::update(machine_->kernels(), piece.size, Real{learning_rate},
                                Real{1} - Real{average_decay}, gradient + piece.begin,
                                variables_.data() + piece.begin, averages_.data() + piece.begin);
  });
  report_.non_finite = find_trouble();
  if (report_.non_finite)
    report_.non_finite->good_steps = good_steps_;
  else
    ++good_steps_;
}

// A variable that was bad before the update caused all else; then come the gradients, and what the
// update itself made too large; and the losses, where nothing more precise is known.
template <class Number>
std::optional<NonFinite> CpuTowers<Number>::find_trouble() const {
  const auto first = [&](auto test) {
    return std::find_if(pieces_.begin(), pieces_.end(),
                        [&](const Piece& piece) { return test(piece.seen); });
  };
  const auto name = [&](const Piece& piece) { return layout_.variables()[piece.variable].name; };
  const auto end = pieces_.end();
  if (const auto p = first([](const auto& seen) { return seen.old_value; }); p != end)
    return NonFinite{-1, name(*p), 0};
  if (const auto p = first([](const auto& seen) { return seen.gradient; }); p != end)
    return name_gradient(p->variable);
  if (const auto p = first([](const auto& seen) { return seen.new_value; }); p != end)
    return NonFinite{-1, name(*p), 0};
  if (const auto p = first([](const auto& seen) { return seen.average; }); p != end)
    return NonFinite{-1, name(*p) + "/ExponentialMovingAverage", 0};
  for (std::size_t t = 0; t < report_.towers.size(); ++t)
    if (!std::isfinite(report_.towers[t].total)) return NonFinite{static_cast<int>(t), "", 0};
  return std::nullopt;
}

template <class Number>
NonFinite CpuTowers<Number>::name_gradient(std::size_t v) const {
  const Variable& variable = layout_.variables()[v];
  const auto bad = std::find_if(gradients_.begin(), gradients_.end(), [&](std::span<Real> tower) {
    return !Number::all_finite(variable.size, tower.data() + variable.offset);
  });
  // The sum of finite gradients may overflow: no tower's fault then.
  constexpr int kNone = std::numeric_limits<int>::max();
  int tower = bad == gradients_.end() ? kNone : static_cast<int>(bad - gradients_.begin());
  if (exchange_) {  // all ranks ask: they see the same mean
    if (tower != kNone) tower += static_cast<int>(exchange_->first_tower());
    tower = exchange_->smallest(tower);
  }
  return {tower == kNone ? -1 : tower, "gradient of " + variable.name, 0};
}

template <class Number>
void CpuTowers<Number>::read_variables(std::span<float> out) {
  copy_as(variables_.data(), layout_.size(), out.data());
}

template <class Number>
void CpuTowers<Number>::read_moving_averages(std::span<float> out) {
  copy_as(averages_.data(), layout_.size(), out.data());
}

template <class Number>
void CpuTowers<Number>::read_gradients(std::span<float> out) {
  const std::span<Real> gradient = mean_.empty() ? gradients_[0] : mean_;
  copy_as(gradient.data(), layout_.size(), out.data());
}

template <class Number>
void CpuTowers<Number>::write_variables(std::span<const float> variables,
                                        std::span<const float> moving_averages) {
  for (const Variable& v : layout_.variables()) {  // the padding stays zero
    copy_as(variables.data() + v.offset, v.size, variables_.data() + v.offset);
    copy_as(moving_averages.data() + v.offset, v.size, averages_.data() + v.offset);
  }
}

template <class Number>
std::span<const float> CpuTowers<Number>::activations(const std::string& layer) {
  const std::span<const float> values = jobs_[last_job_].plan->activations(layer);
  if (!keep_activations_ || values.empty())
    throw std::invalid_argument("no activations were kept of layer " + layer);
  return values;
}

template class CpuTowers<Fp32>;
template class CpuTowers<Fp64>;

}  // namespace towers::cpu
