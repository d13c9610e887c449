// In the place of cuda/matmul.cpp and cuBLASLt: plain loops.

#include "cuda/matmul.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "tests/cuda_host/vendor.h"

namespace towers::cuda {
namespace {

using cuda_host::enqueue_operation;
using cuda_host::Rounded;
using cuda_host::values;
using cuda_host::Widened;

template <class In, class Out>
class StandInMatmul final : public Matmul<In, Out> {
  using W = Wide<In>;

 public:
  StandInMatmul(const MatmulSetting& s, DeviceMemory& memory)
      : batch_(cuda_host::product(s.batch)),
        inputs_(cuda_host::product(s.inputs)),
        outputs_(cuda_host::product(s.outputs)),
        setting_(s) {
    if (s.batch < 1 || s.inputs < 1 || s.outputs < 1)
      throw std::logic_error("dense layer (stand-in): empty");
    // Not for every shape, as the real one.
    if (s.relu && s.training && s.outputs % 4 == 0)
      signs_ = memory.allocate<std::uint8_t>(batch_ * column_of_signs(outputs_)).data();
  }

  std::string engine() const override { return "plain loops"; }
  std::string refusals() const override { return ""; }
  const void* signs() const override { return signs_; }
  bool passes_input_relu() const override {
    return setting_.wants_input_gradient && setting_.input_signs != nullptr;
  }

  std::size_t workspace() const override { return 4 * batch_ * outputs_ + 1000; }

  void forward(Stream& stream, const In* x, const In* w, const Out* biases, Out* y,
               void* workspace) override {
    enqueue_operation(stream, "dense layer",
                      {input(x), weights(w), values(biases, outputs_), output(y),
                       values(signs_, signs_ != nullptr ? batch_ * column_of_signs(outputs_) : 0)},
                      {workspace, this->workspace()},
                      [batch = batch_, inputs = inputs_, outputs = outputs_, relu = setting_.relu,
                       x, w, biases, y, signs = signs_] {
                        const Widened<In> wx(x, batch * inputs), ww(w, inputs * outputs);
                        const Widened<Out> wide_biases(biases, outputs);
                        for (std::size_t b = 0; b < batch; ++b) {
                          Rounded<Out> out(y + b * outputs, outputs);
                          W* const row = out.data();
                          std::copy_n(wide_biases.data(), outputs, row);
                          for (std::size_t i = 0; i < inputs; ++i)
                            for (std::size_t o = 0; o < outputs; ++o)
                              row[o] += wx.data()[b * inputs + i] * ww.data()[i * outputs + o];
                          for (std::size_t o = 0; o < outputs && relu; ++o)
                            if (row[o] <= 0) row[o] = 0;  // NaN stays
                          if (signs == nullptr) continue;
                          std::uint8_t* const bits = signs + b * column_of_signs(outputs);
                          std::fill_n(bits, column_of_signs(outputs), std::uint8_t{0});
                          for (std::size_t o = 0; o < outputs; ++o)
                            if (!(row[o] <= 0))
                              bits[o / 8] |= static_cast<std::uint8_t>(1 << o % 8);
                        }
                      });
  }

  void input_gradient(Stream& stream, const In* dy, const In* w, In* dx, void* workspace) override {
    if (!setting_.wants_input_gradient)
      throw std::logic_error("dense layer (stand-in): made without an input gradient");
    const auto* const signs = static_cast<const std::uint8_t*>(setting_.input_signs);
    enqueue_operation(stream, "dense layer's input gradient",
                      {output(dy), weights(w), input(dx),
                       values(signs, signs != nullptr ? batch_ * column_of_signs(inputs_) : 0)},
                      {workspace, this->workspace()},
                      [batch = batch_, inputs = inputs_, outputs = outputs_, dy, w, dx, signs] {
                        const Widened<In> wide_dy(dy, batch * outputs), ww(w, inputs * outputs);
                        for (std::size_t b = 0; b < batch; ++b)
                          for (std::size_t i = 0; i < inputs; ++i) {
                            W sum = 0;
                            for (std::size_t o = 0; o < outputs; ++o)
                              sum += wide_dy.data()[b * outputs + o] * ww.data()[i * outputs + o];
                            if (signs != nullptr &&
                                (signs[b * column_of_signs(inputs) + i / 8] >> i % 8 & 1) == 0)
                              sum = 0;
                            dx[b * inputs + i] = narrow<In>(sum);
                          }
                      });
  }

  void weight_gradient(Stream& stream, const In* x, const In* dy, W* d_weights, W* d_biases,
                       void* workspace) override {
    if (!setting_.training) throw std::logic_error("dense layer (stand-in): made without training");
    enqueue_operation(
        stream, "dense layer's weight gradient",
        {input(x), output(dy), weights(d_weights), values(d_biases, outputs_)},
        {workspace, this->workspace()},
        [batch = batch_, inputs = inputs_, outputs = outputs_, x, dy, d_weights, d_biases] {
          const Widened<In> wx(x, batch * inputs), wide_dy(dy, batch * outputs);
          std::fill_n(d_weights, inputs * outputs, W{0});
          std::fill_n(d_biases, outputs, W{0});
          for (std::size_t b = 0; b < batch; ++b) {
            const W* const d = wide_dy.data() + b * outputs;
            for (std::size_t o = 0; o < outputs; ++o) d_biases[o] += d[o];
            for (std::size_t i = 0; i < inputs; ++i)
              for (std::size_t o = 0; o < outputs; ++o)
                d_weights[i * outputs + o] += wx.data()[b * inputs + i] * d[o];
          }
        });
  }

 private:
  // Bytes of the signs of an image's `count` values, as cuBLASLt has them: lines of 128 bits.
  static std::size_t column_of_signs(std::size_t count) { return (count + 127) / 128 * 16; }
  cuda_host::Tensor input(const In* x) const { return values(x, batch_ * inputs_); }
  template <class T>
  cuda_host::Tensor output(const T* y) const {
    return values(y, batch_ * outputs_);
  }
  template <class T>
  cuda_host::Tensor weights(const T* w) const {
    return values(w, inputs_ * outputs_);
  }

  std::size_t batch_, inputs_, outputs_;
  MatmulSetting setting_;
  std::uint8_t* signs_ = nullptr;
};

}  // namespace

template <class In, class Out>
std::unique_ptr<Matmul<In, Out>> make_matmul(const MatmulSetting& setting, DeviceMemory& memory,
                                             Stream&) {
  return std::make_unique<StandInMatmul<In, Out>>(setting, memory);
}
#define TOWERS_INSTANTIATE(In, Out)                                                          \
  template std::unique_ptr<Matmul<In, Out>> make_matmul(const MatmulSetting&, DeviceMemory&, \
                                                        Stream&);
TOWERS_FOR_EACH_PRODUCT(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
