// A convolution by oneDNN. Forward and the input's gradient go image by image, and so does the
// gradient of few weights. That of many is one call for each block of images that a Chain sums on
// its own: to add them up image by image would take about as long as to compute them.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "cpu/bf16.h"
#include "cpu/chain.h"
#include "cpu/onednn.h"
#include "cpu/onednn_primitive.h"

namespace towers::cpu {
namespace {

using onednn::Desc;
using onednn::Primitive;
using onednn::Tag;
using onednn::Type;
using Backward = dnnl::convolution_backward_weights;

class OnednnConv2d final : public SpatialLayer {
 public:
  OnednnConv2d(const Convolution& convolution, const Extent& input, const Extent& output,
               const Variable& weights, const Variable& biases, const LayerSetting& setting)
      : convolution_(convolution),
        input_(input),
        output_(output),
        weights_(weights),
        biases_(biases),
        setting_(setting),
        workers_(setting.pool->threads()),
        forward_(describe_forward(1)) {
    Memory& memory = *setting.memory;
    const Desc plain_weights(shape_of_weights(), Type::f32, Tag::hwio);
    pack_ = reorder(plain_weights, forward_.weights_desc());
    packed_weights_ = memory.allocate<std::byte>(forward_.weights_desc().get_size());
    packed_biases_ = memory.floats(biases.size);
    forward_call_ = onednn::make_primitive<dnnl::convolution_forward>(
        forward_,
        {{DNNL_ARG_SRC, forward_.src_desc()},
         {DNNL_ARG_WEIGHTS, forward_.weights_desc()},
         {DNNL_ARG_BIAS, forward_.bias_desc()},
         {DNNL_ARG_DST, forward_.dst_desc()}},
        workers_, memory);
    in_ = memory.allocate<Bf16>(input.size() *
                                images(setting.training ? setting.batch_size : workers_));
    values_size_ = std::max(input.size(), output.size());
    values_ = memory.floats(values_size_ * images(workers_));
    if (!setting.training) return;

    const int blocks = blocks_of(setting.batch_size);
    if (weights.size > kFewWeights) longest_run_ = (setting.batch_size + blocks - 1) / blocks;
    d_out_size_ = output.size() * images(longest_run_);
    d_out_ = memory.allocate<Bf16>(d_out_size_ * images(workers_));
    add_weight_gradient(longest_run_);
    // Blocks differ by one image.
    if (longest_run_ > 1 && setting.batch_size % blocks != 0) add_weight_gradient(longest_run_ - 1);
    for (const WeightGradient& g : weight_gradients_)
      packed_size_ = std::max(packed_size_, (g.values + biases.size + 15) / 16 * 16);
    packed_ = memory.floats(2 * packed_size_ * images(workers_));
    if (setting.wants_input_gradient) add_input_gradient(plain_weights);
  }

  Layout input_layout() const override { return {input_}; }
  Layout output_gradient_layout() const override { return {output_}; }
  bool keeps_input() const override { return false; }
  int longest_run() const override { return longest_run_; }

  void prepare(std::span<const float> variables) override {
    const float* weights = variables.data() + weights_.offset;
    std::copy_n(variables.data() + biases_.offset, biases_.size, packed_biases_.data());
    setting_.pool->parallel_for(turned_weights_.empty() ? 1 : 2, [&](int task, int worker) {
      Primitive& pack = task == 0 ? pack_ : pack_turned_;
      const auto& packed = task == 0 ? packed_weights_ : turned_weights_;
      pack.run(worker, {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, packed.data()}});
    });
  }

  void forward(ConstView in, View out, Run run) override {
    for (int i = 0; i < run.count; ++i) {
      Bf16* image = input_image(run, i);
      convert(in.of(i), input_, image);
      with_contiguous(out.of(i), output_, run.worker, [&](float* y) {
        forward_call_.run(run.worker, {{DNNL_ARG_SRC, image},
                                       {DNNL_ARG_WEIGHTS, packed_weights_.data()},
                                       {DNNL_ARG_BIAS, packed_biases_.data()},
                                       {DNNL_ARG_DST, y}});
        // oneDNN's own relu turns NaN into zero.
        if (convolution_.relu) setting_.kernels->bf16.relu(output_.size(), y);
      });
    }
  }

  void backward(const RunGradients& x, Run run) override {
    Bf16* d_out = d_out_.data() + d_out_size_ * images(run.worker);
    for (int i = 0; i < run.count; ++i)
      convert(x.d_out.of(i), output_, d_out + output_.size() * images(i));
    weight_gradient(x, run, d_out);
    if (x.d_in.data == nullptr) return;
    for (int i = 0; i < run.count; ++i)
      with_contiguous(x.d_in.of(i), input_, run.worker, [&](float* d_in) {
        input_gradient_.run(run.worker, {{DNNL_ARG_DIFF_DST, d_out + output_.size() * images(i)},
                                         {DNNL_ARG_WEIGHTS, turned_weights_.data()},
                                         {DNNL_ARG_DIFF_SRC, d_in}});
        if (setting_.relu_input)
          setting_.kernels->bf16.relu_backward(input_.size(), input_image(run, i), d_in);
      });
  }

 private:
  static constexpr std::size_t kFewWeights = 16384;

  // Of one number of images.
  struct WeightGradient {
    int count = 0;
    std::size_t values = 0;  // in oneDNN's layout
    Primitive compute, unpack;
  };

  static std::size_t images(int count) { return static_cast<std::size_t>(count); }
  dnnl::memory::dims shape_of_weights() const {
    return {output_.channels, input_.channels, convolution_.kernel, convolution_.kernel};
  }
  static Desc activations(int count, const Extent& e, Type type) {
    return {{count, e.channels, e.height, e.width}, type, Tag::nhwc};
  }
  dnnl::memory::dims stride() const { return {convolution_.stride, convolution_.stride}; }
  dnnl::memory::dims padding_before() const {
    return {same_padding_before(input_.height, convolution_.kernel, convolution_.stride),
            same_padding_before(input_.width, convolution_.kernel, convolution_.stride)};
  }
  dnnl::memory::dims padding_after() const {
    const auto after = [&](int in, int out, dnnl::memory::dim before) {
      return std::max<dnnl::memory::dim>(
          0, (out - 1) * convolution_.stride + convolution_.kernel - in - before);
    };
    return {after(input_.height, output_.height, padding_before()[0]),
            after(input_.width, output_.width, padding_before()[1])};
  }

  dnnl::convolution_forward::primitive_desc describe_forward(int count) const {
    return onednn::describe<dnnl::convolution_forward>(
        dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        activations(count, input_, Type::bf16), Desc(shape_of_weights(), Type::bf16, Tag::any),
        Desc({output_.channels}, Type::f32, Tag::a), activations(count, output_, Type::f32),
        stride(), padding_before(), padding_after());
  }

  Primitive reorder(const Desc& from, const Desc& to) const {
    return onednn::make_primitive<dnnl::reorder>(
        {onednn::engine(), from, onednn::engine(), to, onednn::attributes()},
        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, workers_, *setting_.memory);
  }

  void add_weight_gradient(int count) {
    const Desc biases({output_.channels}, Type::f32, Tag::a);
    const auto compiled = onednn::describe_backward<Backward>(
        describe_forward(count), dnnl::algorithm::convolution_direct,
        activations(count, input_, Type::bf16), Desc(shape_of_weights(), Type::f32, Tag::any),
        biases, activations(count, output_, Type::bf16), stride(), padding_before(),
        padding_after());
    const Desc packed = compiled.diff_weights_desc();
    WeightGradient gradient{
        count, packed.get_size() / sizeof(float),
        onednn::make_primitive<Backward>(compiled,
                                         {{DNNL_ARG_SRC, compiled.src_desc()},
                                          {DNNL_ARG_DIFF_DST, compiled.diff_dst_desc()},
                                          {DNNL_ARG_DIFF_WEIGHTS, packed},
                                          {DNNL_ARG_DIFF_BIAS, biases}},
                                         workers_, *setting_.memory),
        reorder(packed, Desc(shape_of_weights(), Type::f32, Tag::hwio))};
    weight_gradients_.push_back(std::move(gradient));
  }

  void add_input_gradient(const Desc& plain_weights) {
    const auto compiled = onednn::describe_backward<dnnl::convolution_backward_data>(
        forward_, dnnl::algorithm::convolution_direct, activations(1, input_, Type::f32),
        Desc(shape_of_weights(), Type::bf16, Tag::any), activations(1, output_, Type::bf16),
        stride(), padding_before(), padding_after());
    input_gradient_ = onednn::make_primitive<dnnl::convolution_backward_data>(
        compiled,
        {{DNNL_ARG_DIFF_DST, compiled.diff_dst_desc()},
         {DNNL_ARG_WEIGHTS, compiled.weights_desc()},
         {DNNL_ARG_DIFF_SRC, compiled.diff_src_desc()}},
        workers_, *setting_.memory);
    pack_turned_ = reorder(plain_weights, compiled.weights_desc());
    turned_weights_ = setting_.memory->allocate<std::byte>(compiled.weights_desc().get_size());
  }

  // Training keeps the whole batch's for the weights' gradient.
  Bf16* input_image(const Run& run, int i) const {
    return in_.data() + input_.size() * images(setting_.training ? run.first + i : run.worker);
  }

  void convert(ConstView from, const Extent& extent, Bf16* to) const {
    const auto& kernels = setting_.kernels->bf16;
    if (is_contiguous(from, extent)) return kernels.convert(extent.size(), from.data, to);
    for (int y = 0; y < extent.height; ++y)
      for (int x = 0; x < extent.width; ++x, to += extent.channels)
        kernels.convert(static_cast<std::size_t>(extent.channels), from.at(y, x), to);
  }

  static bool is_contiguous(ConstView view, const Extent& extent) {
    const ConstView plain = contiguous(view.data, extent);
    return view.row == plain.row && view.pixel == plain.pixel;
  }

  // compute(values) writes an image; at once to its place where nothing lies between its pixels.
  template <class Compute>
  void with_contiguous(View to, const Extent& extent, int worker, const Compute& compute) const {
    if (is_contiguous(to, extent)) return compute(to.data);
    float* values = values_.data() + values_size_ * images(worker);
    compute(values);
    copy_image(contiguous<const float>(values, extent), to, extent);
  }

  void weight_gradient(const RunGradients& x, const Run& run, const Bf16* d_out) {
    const auto found =
        std::find_if(weight_gradients_.begin(), weight_gradients_.end(),
                     [&](const WeightGradient& gradient) { return gradient.count == run.count; });
    if (found == weight_gradients_.end())
      throw std::logic_error("a weights' gradient is not of a block of images");
    // The sum so far, weights and then biases, and behind it the gradients of this run.
    float* sum = packed_.data() + 2 * packed_size_ * images(run.worker);
    float* packed = x.begins ? sum : sum + packed_size_;
    found->compute.run(run.worker, {{DNNL_ARG_SRC, input_image(run, 0)},
                                    {DNNL_ARG_DIFF_DST, d_out},
                                    {DNNL_ARG_DIFF_WEIGHTS, packed},
                                    {DNNL_ARG_DIFF_BIAS, packed + found->values}});
    if (!x.begins)
      setting_.kernels->update.sum_parts(found->values + biases_.size, sum, packed_size_, 2,
                                         nullptr, 0, sum);
    if (!x.ends) return;
    const auto gradient = [&](const Variable& variable) {
      return x.weights.data() + (variable.offset - setting_.gradient_origin);
    };
    found->unpack.run(run.worker, {{DNNL_ARG_FROM, sum}, {DNNL_ARG_TO, gradient(weights_)}});
    std::copy_n(sum + found->values, biases_.size, gradient(biases_));
  }

  Convolution convolution_;
  Extent input_, output_;
  Variable weights_, biases_;
  LayerSetting setting_;
  int workers_;
  int longest_run_ = 1;
  dnnl::convolution_forward::primitive_desc forward_;
  Primitive forward_call_, input_gradient_, pack_, pack_turned_;
  std::vector<WeightGradient> weight_gradients_;
  std::span<std::byte> packed_weights_, turned_weights_;
  std::span<float> packed_biases_;
  std::span<Bf16> in_;       // [batch or worker][input]
  std::span<Bf16> d_out_;    // [worker][block][output]
  std::span<float> values_;  // [worker], an image
  std::span<float> packed_;  // [worker][2], weights and biases
  std::size_t d_out_size_ = 0, values_size_ = 0, packed_size_ = 0;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_onednn_conv2d(const Convolution& convolution,
                                                 const Extent& input, const Extent& output,
                                                 const Variable& weights, const Variable& biases,
                                                 const LayerSetting& setting) {
  return onednn::compiled("a convolution of kernel " + std::to_string(convolution.kernel), [&] {
    return std::make_unique<OnednnConv2d>(convolution, input, output, weights, biases, setting);
  });
}

}  // namespace towers::cpu
