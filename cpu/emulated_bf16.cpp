#include "cpu/emulated_bf16.h"

#include <algorithm>

#include "cpu/bf16.h"
#include "cpu/dense.h"

namespace towers::cpu {
namespace {

constexpr std::size_t kPieceSize = 8192;

LayerSetting setting_of_fp32(LayerSetting setting) {
  setting.arithmetic.products = Products::fp32;
  return setting;
}

// Rounds in pieces, on all threads.
void round_all(const LayerSetting& setting, std::size_t size, const float* from, float* to) {
  const std::size_t pieces = (size + kPieceSize - 1) / kPieceSize;
  setting.pool->parallel_for(static_cast<int>(pieces), [&](int task, int) {
    const std::size_t begin = static_cast<std::size_t>(task) * kPieceSize;
    setting.kernels->bf16.round(std::min(kPieceSize, size - begin), from + begin, to + begin);
  });
}

// A layer's weights, rounded, and its biases, where they lie among all variables.
class RoundedVariables {
 public:
  RoundedVariables(const Variable& weights, const Variable& biases, const LayerSetting& setting)
      : weights_(weights),
        biases_(biases),
        setting_(setting),
        // Memory that nobody touches costs nothing: that before the weights.
        values_(setting.memory->floats(
            std::max(weights.offset + weights.size, biases.offset + biases.size))) {}

  std::span<const float> of(std::span<const float> variables) const {
    round_all(setting_, weights_.size, variables.data() + weights_.offset,
              values_.data() + weights_.offset);
    std::copy_n(variables.data() + biases_.offset, biases_.size, values_.data() + biases_.offset);
    return values_;
  }

 private:
  Variable weights_, biases_;
  LayerSetting setting_;
  std::span<float> values_;
};

class EmulatedConv2d final : public SpatialLayer {
 public:
  EmulatedConv2d(const Convolution& convolution, const Extent& input, const Extent& output,
                 const Variable& weights, const Variable& biases, const LayerSetting& setting)
      : setting_(setting),
        variables_(weights, biases, setting),
        layer_(make_conv2d(convolution, input, output, weights, biases, setting_of_fp32(setting))),
        per_worker_(layer_->longest_run()) {
    in_ = make_rounded(layer_->input_layout(),
                       setting.training ? setting.batch_size : workers_images());
    if (setting.training) d_out_ = make_rounded(layer_->output_gradient_layout(), workers_images());
  }

  Layout input_layout() const override { return {in_.layout.extent}; }
  Layout output_gradient_layout() const override { return {d_out_.layout.extent}; }
  bool keeps_input() const override { return false; }
  int longest_run() const override { return per_worker_; }

  void prepare(std::span<const float> variables) override {
    layer_->prepare(variables_.of(variables));
  }
  void forward(ConstView in, View out, Run run) override {
    const View rounded = in_.images(input_place(run));
    round_images(in, rounded, in_.layout.extent, run.count);
    layer_->forward(rounded, out, run);
  }
  void backward(const RunGradients& x, Run run) override {
    const View d_out = d_out_.images(run.worker * per_worker_);
    round_images(x.d_out, d_out, d_out_.layout.extent, run.count);
    RunGradients rounded = x;
    rounded.in = in_.images(input_place(run));
    rounded.d_out = d_out;
    layer_->backward(rounded, run);
  }

 private:
  // Images as the layer wants them laid out.
  struct Rounded {
    Layout layout;
    std::size_t stride = 0;
    std::span<float> values;

    View images(int first) const {
      return layout.view(values.data() + stride * static_cast<std::size_t>(first),
                         static_cast<std::ptrdiff_t>(stride));
    }
  };

  int workers_images() const { return per_worker_ * setting_.pool->threads(); }
  // Training keeps the whole batch's for the weights' gradient.
  int input_place(const Run& run) const {
    return setting_.training ? run.first : run.worker * per_worker_;
  }
  Rounded make_rounded(const Layout& layout, int images) const {
    return {layout, layout.stride(), setting_.memory->floats(layout.buffer_size(images))};
  }
  void round_images(ConstView from, View to, const Extent& extent, int count) const {
    for (int image = 0; image < count; ++image)
      for (int y = 0; y < extent.height; ++y)
        for (int x = 0; x < extent.width; ++x)
          setting_.kernels->bf16.round(static_cast<std::size_t>(extent.channels),
                                       from.of(image).at(y, x), to.of(image).at(y, x));
  }

  LayerSetting setting_;
  RoundedVariables variables_;
  std::unique_ptr<SpatialLayer> layer_;
  int per_worker_;
  Rounded in_, d_out_;
};

class EmulatedDense final : public Stage {
 public:
  EmulatedDense(const Layer& layer, std::size_t inputs, const Variable& weights,
                const Variable& biases, const LayerSetting& setting)
      : setting_(setting),
        weights_(weights),
        inputs_(inputs),
        outputs_(biases.size),
        batch_(static_cast<std::size_t>(setting.batch_size)),
        variables_(weights, biases, setting) {
    Variable plain = weights;
    plain.weight_decay = 0;  // of the weights themselves, not of what they are rounded to
    stage_ = make_dense(layer, inputs, plain, biases, setting_of_fp32(setting));
    in_ = setting.memory->floats(batch_ * inputs_);
    if (setting.training) d_out_ = setting.memory->floats(batch_ * outputs_);
  }

  void prepare(std::span<const float> variables) override {
    stage_->prepare(variables_.of(variables));
  }
  void forward(const float* in, float* out, int images, bool keep_activations) override {
    round_all(setting_, static_cast<std::size_t>(images) * inputs_, in, in_.data());
    stage_->forward(in_.data(), out, images, keep_activations);
  }
  void backward(const float*, const float* d_out, float* d_in, std::span<const float> variables,
                std::span<float> gradients) override {
    round_all(setting_, d_out_.size(), d_out, d_out_.data());
    stage_->backward(in_.data(), d_out_.data(), d_in, variables, gradients);
    add_weight_decay(weights_, setting_, variables, gradients);
  }
  const float* activations(const std::string& layer) const override {
    return stage_->activations(layer);
  }

 private:
  LayerSetting setting_;
  Variable weights_;
  std::size_t inputs_, outputs_, batch_;
  RoundedVariables variables_;
  std::unique_ptr<Stage> stage_;
  std::span<float> in_, d_out_;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_emulated_conv2d(const Convolution& convolution,
                                                   const Extent& input, const Extent& output,
                                                   const Variable& weights, const Variable& biases,
                                                   const LayerSetting& setting) {
  return std::make_unique<EmulatedConv2d>(convolution, input, output, weights, biases, setting);
}

std::unique_ptr<Stage> make_emulated_dense(const Layer& layer, std::size_t inputs,
                                           const Variable& weights, const Variable& biases,
                                           const LayerSetting& setting) {
  return std::make_unique<EmulatedDense>(layer, inputs, weights, biases, setting);
}

}  // namespace towers::cpu
