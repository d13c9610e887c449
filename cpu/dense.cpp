#include "cpu/dense.h"

#include <algorithm>

#include "cpu/emulated_bf16.h"
#include "cpu/memory.h"
#include "cpu/onednn.h"

namespace towers::cpu {
namespace {

class DenseStage final : public Stage {
 public:
  DenseStage(const Layer& layer, std::size_t inputs, const Variable& weights,
             const Variable& biases, const LayerSetting& setting)
      : name_(layer.name),
        relu_(std::get<Dense>(layer.op).relu),
        inputs_(static_cast<std::ptrdiff_t>(inputs)),
        outputs_(std::get<Dense>(layer.op).outputs),
        batch_(setting.batch_size),
        weights_(weights),
        biases_(biases),
        setting_(setting),
        gemm_(setting.kernels->gemm) {
    const auto size = [](std::ptrdiff_t values) { return static_cast<std::size_t>(values); };
    if (!setting.training) return;
    panel_size_ = size(batch_ * gemm_.panel);
    panels_ = setting.memory->floats(panel_size_ * size(setting.pool->threads()));
    packed_d_out_ = setting.memory->floats(size(batch_ * gemm_.padded(outputs_)));
  }

  void prepare(std::span<const float> variables) override {
    weights_now_ = variables.data() + weights_.offset;
    biases_now_ = variables.data() + biases_.offset;
  }

  void forward(const float* in, float* out, int images, bool) override {
    const LayerClock::Lap lap = lap_of(Pass::forward);
    out_ = out;
    // As many tasks as threads, or their activations pass through the cache more often than need
    // be.
    const std::ptrdiff_t all = count(outputs_, gemm_.panel);
    const std::ptrdiff_t tasks = std::min<std::ptrdiff_t>(all, setting_.pool->threads());
    setting_.pool->parallel_for(static_cast<int>(tasks), [&](int task, int) {
      const std::ptrdiff_t column = all * task / tasks * gemm_.panel;
      const std::ptrdiff_t end = std::min(outputs_, all * (task + 1) / tasks * gemm_.panel);
      Gemm g;
      g.a = in;
      g.a_row = inputs_;
      g.segment_length = inputs_;
      g.b = weights_now_ + column;
      g.b_k = outputs_;
      g.c = out + column;
      g.c_row = outputs_;
      g.rows = images;
      g.columns = end - column;
      g.start = biases_now_ + column;
      g.relu = relu_;
      gemm_.gemm(g);
    });
  }

  void backward(const float* in, const float* d_out, float* d_in, std::span<const float>,
                std::span<float> gradients) override {
    const LayerClock::Lap lap = lap_of(Pass::backward);
    setting_.pool->parallel_for(count(outputs_, gemm_.panel), [&](int task, int) {
      const std::ptrdiff_t column = task * gemm_.panel;
      float* packed = packed_d_out_.data() + column * batch_;
      const std::ptrdiff_t columns = std::min(gemm_.panel, outputs_ - column);
      gemm_.pack_panels({d_out + column, outputs_, 1, batch_, columns, packed, 0});
      gemm_.column_sums(packed, batch_, columns, false, gradients.data() + biases_.offset + column);
    });
    const int input_tasks = d_in == nullptr ? 0 : count(inputs_, gemm_.panel);
    const int weight_tasks = count(inputs_, gemm_.panel);
    setting_.pool->parallel_for(input_tasks + weight_tasks, [&](int task, int worker) {
      if (task < input_tasks)
        input_gradient(in, d_out, d_in, task * gemm_.panel);
      else
        weight_gradient(in, gradients.data() + weights_.offset, (task - input_tasks) * gemm_.panel,
                        panel(worker));
    });
  }

  const float* activations(const std::string& layer) const override {
    return layer == name_ ? out_ : nullptr;
  }

 private:
  // All threads of the pool work on the layer at once.
  LayerClock::Lap lap_of(Pass pass) const {
    return {setting_.clock, pass, weights_.layer, 0, setting_.pool->threads()};
  }
  static int count(std::ptrdiff_t values, std::ptrdiff_t per_task) {
    return static_cast<int>((values + per_task - 1) / per_task);
  }
  float* panel(int worker) const {
    return panels_.data() + panel_size_ * static_cast<std::size_t>(worker);
  }

  // Inputs [column, column + panel) of d_in = d_out * transposed weights.
  void input_gradient(const float* in, const float* d_out, float* d_in,
                      std::ptrdiff_t column) const {
    Gemm g;
    g.columns = std::min(gemm_.panel, inputs_ - column);
    g.a = d_out;
    g.a_row = outputs_;
    g.segment_length = outputs_;
    g.b = weights_now_ + column * outputs_;
    g.b_k = 1;
    g.b_column = outputs_;
    g.c = d_in + column;
    g.c_row = inputs_;
    g.rows = batch_;
    gemm_.gemm(g);
    if (!setting_.relu_input) return;
    for (std::ptrdiff_t image = 0; image < batch_; ++image)
      setting_.kernels->update.relu_backward(static_cast<std::size_t>(g.columns),
                                             in + image * inputs_ + column,
                                             d_in + image * inputs_ + column);
  }

  // Rows [row, row + panel) of transposed in * d_out + decay * weights.
  void weight_gradient(const float* in, float* gradient, std::ptrdiff_t row, float* packed) const {
    Gemm g;
    g.rows = std::min(gemm_.panel, inputs_ - row);
    // The activations of one input are far apart; together they stay in the first-level cache.
    gemm_.pack_panels({in + row, inputs_, 1, batch_, g.rows, packed, 0});
    g.a = packed;
    g.a_row = 1;
    g.a_k = gemm_.panel;
    g.segment_length = batch_;
    g.b = packed_d_out_.data();
    g.c = gradient + row * outputs_;
    g.c_row = outputs_;
    g.columns = outputs_;
    if (weights_.weight_decay != 0) {
      g.start = weights_now_ + row * outputs_;
      g.start_row = outputs_;
      g.start_scale = static_cast<float>(weights_.weight_decay);
    }
    gemm_.gemm(g);
  }

  std::string name_;
  bool relu_;
  std::ptrdiff_t inputs_, outputs_, batch_;
  Variable weights_, biases_;
  LayerSetting setting_;
  GemmKernels gemm_;
  const float *weights_now_ = nullptr, *biases_now_ = nullptr;
  const float* out_ = nullptr;
  std::span<float> panels_, packed_d_out_;
  std::size_t panel_size_ = 0;
};

}  // namespace

std::unique_ptr<Stage> make_dense(const Layer& layer, std::size_t inputs, const Variable& weights,
                                  const Variable& biases, const LayerSetting& setting) {
  switch (setting.arithmetic.products) {
    case Products::bf16:
      return make_onednn_dense(layer, inputs, weights, biases, setting);
    case Products::bf16_emulated:
      return make_emulated_dense(layer, inputs, weights, biases, setting);
    default:
      return std::make_unique<DenseStage>(layer, inputs, weights, biases, setting);
  }
}

void add_weight_decay(const Variable& weights, const LayerSetting& setting,
                      std::span<const float> variables, std::span<float> gradients) {
  if (weights.weight_decay == 0) return;
  constexpr std::size_t kPieceSize = 8192;
  const std::size_t pieces = (weights.size + kPieceSize - 1) / kPieceSize;
  setting.pool->parallel_for(static_cast<int>(pieces), [&](int task, int) {
    const std::size_t begin = static_cast<std::size_t>(task) * kPieceSize;
    float* gradient = gradients.data() + weights.offset + begin;
    setting.kernels->update.sum_parts(std::min(kPieceSize, weights.size - begin), gradient, 0, 1,
                                      variables.data() + weights.offset + begin,
                                      static_cast<float>(weights.weight_decay), gradient);
  });
}

}  // namespace towers::cpu
