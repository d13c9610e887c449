// In the place of cuda/matmul.cpp and cuBLASLt: plain loops.

#include "cuda/matmul.h"

#include <algorithm>
#include <stdexcept>

#include "tests/cuda_host/vendor.h"

namespace towers::cuda {
namespace {

using cuda_host::enqueue_operation;
using cuda_host::floats;

class StandInMatmul final : public Matmul {
 public:
  explicit StandInMatmul(const MatmulSetting& s)
      : batch_(cuda_host::product(s.batch)),
        inputs_(cuda_host::product(s.inputs)),
        outputs_(cuda_host::product(s.outputs)),
        setting_(s) {
    if (s.batch < 1 || s.inputs < 1 || s.outputs < 1)
      throw std::logic_error("dense layer (stand-in): empty");
  }

  std::size_t workspace() const override { return 4 * batch_ * outputs_ + 1000; }

  void forward(Stream& stream, const float* x, const float* w, const float* biases, float* y,
               void* workspace) override {
    enqueue_operation(stream, "dense layer",
                      {input(x), weights(w), floats(biases, outputs_), output(y)},
                      {workspace, this->workspace()},
                      [batch = batch_, inputs = inputs_, outputs = outputs_, relu = setting_.relu,
                       x, w, biases, y] {
                        for (std::size_t b = 0; b < batch; ++b) {
                          float* const row = y + b * outputs;
                          std::copy_n(biases, outputs, row);
                          for (std::size_t i = 0; i < inputs; ++i)
                            for (std::size_t o = 0; o < outputs; ++o)
                              row[o] += x[b * inputs + i] * w[i * outputs + o];
                          for (std::size_t o = 0; o < outputs && relu; ++o)
                            if (row[o] <= 0) row[o] = 0;  // NaN stays
                        }
                      });
  }

  void input_gradient(Stream& stream, const float* dy, const float* w, float* dx,
                      void* workspace) override {
    if (!setting_.wants_input_gradient)
      throw std::logic_error("dense layer (stand-in): made without an input gradient");
    enqueue_operation(stream, "dense layer's input gradient", {output(dy), weights(w), input(dx)},
                      {workspace, this->workspace()},
                      [batch = batch_, inputs = inputs_, outputs = outputs_, dy, w, dx] {
                        for (std::size_t b = 0; b < batch; ++b)
                          for (std::size_t i = 0; i < inputs; ++i) {
                            float sum = 0;
                            for (std::size_t o = 0; o < outputs; ++o)
                              sum += dy[b * outputs + o] * w[i * outputs + o];
                            dx[b * inputs + i] = sum;
                          }
                      });
  }

  void weight_gradient(Stream& stream, const float* x, const float* dy, float* d_weights,
                       float* d_biases, void* workspace) override {
    if (!setting_.training) throw std::logic_error("dense layer (stand-in): made without training");
    enqueue_operation(
        stream, "dense layer's weight gradient",
        {input(x), output(dy), weights(d_weights), floats(d_biases, outputs_)},
        {workspace, this->workspace()},
        [batch = batch_, inputs = inputs_, outputs = outputs_, x, dy, d_weights, d_biases] {
          std::fill_n(d_weights, inputs * outputs, 0.0f);
          std::fill_n(d_biases, outputs, 0.0f);
          for (std::size_t b = 0; b < batch; ++b) {
            const float* const d = dy + b * outputs;
            for (std::size_t o = 0; o < outputs; ++o) d_biases[o] += d[o];
            for (std::size_t i = 0; i < inputs; ++i)
              for (std::size_t o = 0; o < outputs; ++o)
                d_weights[i * outputs + o] += x[b * inputs + i] * d[o];
          }
        });
  }

 private:
  cuda_host::Tensor input(const float* x) const { return floats(x, batch_ * inputs_); }
  cuda_host::Tensor output(const float* y) const { return floats(y, batch_ * outputs_); }
  cuda_host::Tensor weights(const float* w) const { return floats(w, inputs_ * outputs_); }

  std::size_t batch_, inputs_, outputs_;
  MatmulSetting setting_;
};

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSetting& setting, DeviceMemory&, Stream&) {
  return std::make_unique<StandInMatmul>(setting);
}

}  // namespace towers::cuda
