// A dense layer by oneDNN: three matrix products, each cut into pieces that threads share.

#include <algorithm>
#include <utility>

#include "cpu/bf16.h"
#include "cpu/dense.h"
#include "cpu/onednn.h"
#include "cpu/onednn_primitive.h"

namespace towers::cpu {
namespace {

using onednn::Desc;
using onednn::Primitive;
using onednn::Type;
using Dim = dnnl::memory::dim;

std::size_t size(Dim value) {
  return static_cast<std::size_t>(value);
}

// Values lie row * row_stride + column * column_stride apart.
struct Strides {
  Dim row = 0, column = 1;
};

// C = A * B, or + a row of biases, for rows x inner and inner x columns. Cut into pieces by its
// rows or columns: the same pieces for any number of threads.
class Product {
 public:
  enum class Cut { rows, columns };
  struct Setting {
    Dim rows, inner, columns;
    Strides a, b;
    Dim c_row;
    Cut cut;
    bool biases;
  };

  Product() = default;
  Product(const Setting& setting, Dim piece, int workers, Memory& memory)
      : s_(setting), cut_(s_.cut == Cut::rows ? s_.rows : s_.columns) {
    pieces_ = (cut_ + piece - 1) / piece;
    smaller_ = compile(cut_ / pieces_, workers, memory);
    if (cut_ % pieces_ != 0) larger_ = compile(cut_ / pieces_ + 1, workers, memory);
  }

  int pieces() const { return static_cast<int>(pieces_); }

  // Writes one piece of c and returns where its rows or columns begin and end.
  std::pair<Dim, Dim> run(int piece, int worker, const Bf16* a, const Bf16* b, const float* biases,
                          float* c) {
    const Dim begin = cut_ * piece / pieces_, end = cut_ * (piece + 1) / pieces_;
    const bool by_rows = s_.cut == Cut::rows;
    Primitive& product = end - begin == cut_ / pieces_ ? smaller_ : larger_;
    const Bf16* a_piece = by_rows ? a + begin * s_.a.row : a;
    const Bf16* b_piece = by_rows ? b : b + begin * s_.b.column;
    float* c_piece = c + begin * (by_rows ? s_.c_row : 1);
    if (s_.biases)
      product.run(worker, {{DNNL_ARG_SRC, a_piece},
                           {DNNL_ARG_WEIGHTS, b_piece},
                           {DNNL_ARG_BIAS, by_rows ? biases : biases + begin},
                           {DNNL_ARG_DST, c_piece}});
    else
      product.run(worker,
                  {{DNNL_ARG_SRC, a_piece}, {DNNL_ARG_WEIGHTS, b_piece}, {DNNL_ARG_DST, c_piece}});
    return {begin, end};
  }

 private:
  Primitive compile(Dim piece, int workers, Memory& memory) const {
    const Dim rows = s_.cut == Cut::rows ? piece : s_.rows;
    const Dim columns = s_.cut == Cut::rows ? s_.columns : piece;
    const auto matrix = [](Dim height, Dim width, Strides s, Type type) {
      return Desc({height, width}, type, dnnl::memory::dims{s.row, s.column});
    };
    const Desc a = matrix(rows, s_.inner, s_.a, Type::bf16);
    const Desc b = matrix(s_.inner, columns, s_.b, Type::bf16);
    const Desc c = matrix(rows, columns, {s_.c_row, 1}, Type::f32);
    const Desc biases({1, columns}, Type::f32, dnnl::memory::dims{columns, 1});
    std::vector<Primitive::Argument> arguments{
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
    if (s_.biases) arguments.push_back({DNNL_ARG_BIAS, biases});
    return onednn::make_primitive<dnnl::matmul>(
        s_.biases ? onednn::describe<dnnl::matmul>(a, b, biases, c)
                  : onednn::describe<dnnl::matmul>(a, b, c),
        arguments, workers, memory);
  }

  Setting s_{};
  Dim cut_ = 0, pieces_ = 0;
  Primitive smaller_, larger_;
};

class OnednnDense final : public Stage {
 public:
  OnednnDense(const Layer& layer, std::size_t inputs, const Variable& weights,
              const Variable& biases, const LayerSetting& setting)
      : name_(layer.name),
        relu_(std::get<Dense>(layer.op).relu),
        inputs_(static_cast<Dim>(inputs)),
        outputs_(std::get<Dense>(layer.op).outputs),
        batch_(setting.batch_size),
        weights_(weights),
        biases_(biases),
        setting_(setting) {
    Memory& memory = *setting.memory;
    const int workers = setting.pool->threads();
    using Cut = Product::Cut;
    forward_ = Product(
        {batch_, inputs_, outputs_, {inputs_, 1}, {outputs_, 1}, outputs_, Cut::columns, true},
        kOutputsPerPiece, workers, memory);
    packed_weights_ = memory.allocate<Bf16>(weights.size);
    packed_biases_ = memory.floats(biases.size);
    in_ = memory.allocate<Bf16>(size(batch_ * inputs_));
    if (!setting.training) return;
    d_out_ = memory.allocate<Bf16>(size(batch_ * outputs_));
    weight_gradient_ = Product(
        {inputs_, batch_, outputs_, {1, inputs_}, {outputs_, 1}, outputs_, Cut::rows, false},
        kInputsPerPiece, workers, memory);
    if (setting.wants_input_gradient)
      input_gradient_ = Product(
          {batch_, outputs_, inputs_, {outputs_, 1}, {1, outputs_}, inputs_, Cut::columns, false},
          kInputsPerPiece, workers, memory);
  }

  void prepare(std::span<const float> variables) override {
    convert(weights_.size, variables.data() + weights_.offset, packed_weights_.data());
    std::copy_n(variables.data() + biases_.offset, biases_.size, packed_biases_.data());
  }

  // Always of a whole batch: rows beyond `images` are nobody's.
  void forward(const float* in, float* out, int images, bool) override {
    const LayerClock::Lap lap = lap_of(Pass::forward);
    out_ = out;
    convert(size(images * inputs_), in, in_.data());
    setting_.pool->parallel_for(forward_.pieces(), [&](int piece, int worker) {
      const auto [begin, end] = forward_.run(piece, worker, in_.data(), packed_weights_.data(),
                                             packed_biases_.data(), out);
      if (!relu_) return;  // oneDNN's own turns NaN into zero
      for (Dim image = 0; image < images; ++image)
        setting_.kernels->bf16.relu(size(end - begin), out + image * outputs_ + begin);
    });
  }

  void backward(const float* in, const float* d_out, float* d_in, std::span<const float> variables,
                std::span<float> gradients) override {
    const LayerClock::Lap lap = lap_of(Pass::backward);
    convert(d_out_.size(), d_out, d_out_.data());
    const int input_pieces = d_in == nullptr ? 0 : input_gradient_.pieces();
    const int pieces = input_pieces + weight_gradient_.pieces();
    setting_.pool->parallel_for(pieces + 1, [&](int task, int worker) {
      if (task == pieces)
        bias_gradient(gradients.data() + biases_.offset);
      else if (task < input_pieces)
        input_gradient(task, worker, in, d_in);
      else
        weight_gradient_.run(task - input_pieces, worker, in_.data(), d_out_.data(), nullptr,
                             gradients.data() + weights_.offset);
    });
    add_weight_decay(weights_, setting_, variables, gradients);
  }

  const float* activations(const std::string& layer) const override {
    return layer == name_ ? out_ : nullptr;
  }

 private:
  static constexpr Dim kOutputsPerPiece = 64, kInputsPerPiece = 128;

  // All threads of the pool work on the layer at once.
  LayerClock::Lap lap_of(Pass pass) const {
    return {setting_.clock, pass, weights_.layer, 0, setting_.pool->threads()};
  }

  void convert(std::size_t count, const float* from, Bf16* to) const {
    constexpr std::size_t kPieceSize = 16384;
    const std::size_t pieces = (count + kPieceSize - 1) / kPieceSize;
    setting_.pool->parallel_for(static_cast<int>(pieces), [&](int task, int) {
      const std::size_t begin = static_cast<std::size_t>(task) * kPieceSize;
      setting_.kernels->bf16.convert(std::min(kPieceSize, count - begin), from + begin, to + begin);
    });
  }

  void input_gradient(int piece, int worker, const float* in, float* d_in) {
    const auto [begin, end] =
        input_gradient_.run(piece, worker, d_out_.data(), packed_weights_.data(), nullptr, d_in);
    if (!setting_.relu_input) return;
    for (Dim image = 0; image < batch_; ++image)
      setting_.kernels->update.relu_backward(size(end - begin), in + image * inputs_ + begin,
                                             d_in + image * inputs_ + begin);
  }

  void bias_gradient(float* gradient) const {
    std::fill_n(gradient, biases_.size, 0.0f);
    for (Dim image = 0; image < batch_; ++image)
      for (Dim o = 0; o < outputs_; ++o)
        gradient[o] += to_float(d_out_[size(image * outputs_ + o)]);
  }

  std::string name_;
  bool relu_;
  Dim inputs_, outputs_, batch_;
  Variable weights_, biases_;
  LayerSetting setting_;
  Product forward_, input_gradient_, weight_gradient_;
  std::span<Bf16> packed_weights_, in_, d_out_;
  std::span<float> packed_biases_;
  const float* out_ = nullptr;
};

}  // namespace

std::unique_ptr<Stage> make_onednn_dense(const Layer& layer, std::size_t inputs,
                                         const Variable& weights, const Variable& biases,
                                         const LayerSetting& setting) {
  return onednn::compiled("dense layer " + layer.name, [&] {
    return std::make_unique<OnednnDense>(layer, inputs, weights, biases, setting);
  });
}

}  // namespace towers::cpu
