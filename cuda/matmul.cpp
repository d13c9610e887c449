// Dense layers by cuBLASLt, which is column-major: our row-major [rows][columns] is its columns x
// rows, so output = input * weights becomes output' = weights' * input', without moving anything.

#include "cuda/matmul.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/kernels.h"
#include "cuda/product.h"

namespace towers::cuda {
namespace {

const char* epilogue_name(cublasLtEpilogue_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
      return "with biases, relu and its signs";
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return "with biases and relu";
    case CUBLASLT_EPILOGUE_BIAS:
      return "with biases";
    case CUBLASLT_EPILOGUE_BGRADA:
      return "with that of the biases";
    case CUBLASLT_EPILOGUE_DRELU:
      return "with the relu's";
    default:
      return "alone";
  }
}

// A product with the first of the epilogues that cuBLASLt has for the shape, else without one.
template <class In, class Out>
struct FusedProduct {
  std::unique_ptr<Product<In, Out>> product;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::string refusals;  // of the epilogues before that one

  FusedProduct() = default;
  FusedProduct(const Matrix& a, const Matrix& b, int rows, int columns,
               std::vector<Epilogue> epilogues, bool allow_tf32, Stream& stream) {
    epilogues.push_back({});
    for (const Epilogue& candidate : epilogues) {
      product = std::make_unique<Product<In, Out>>();
      epilogue = candidate.kind;
      if (product->compile(a, b, rows, columns, candidate, allow_tf32, stream)) return;
      refusals += (refusals.empty() ? "" : ", ") + std::string(epilogue_name(epilogue)) + " (" +
                  product->refusal() + ")";
    }
    throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(rows) + " x " +
                std::to_string(columns) + " values in " + to_string(precision_of<In>()) +
                " on this GPU: " + refusals);
  }
  bool fused() const { return epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
};

template <class In, class Out>
class DenseProducts final : public Matmul<In, Out> {
 public:
  DenseProducts(const MatmulSetting& setting, DeviceMemory& memory, Stream& stream) : s_(setting) {
    const DeviceGuard guard(stream.device());
    const auto compile = [&](auto& product, const Matrix& a, const Matrix& b, int rows, int columns,
                             std::vector<Epilogue> epilogues) {
      product = {a, b, rows, columns, std::move(epilogues), s_.allow_tf32, stream};
    };
    const int batch = s_.batch, in = s_.inputs, out = s_.outputs;
    std::vector<Epilogue> after_forward, after_backward;
    if (s_.relu && s_.training) {
      signs_ = memory.allocate<std::byte>(bytes_of_signs(out, batch)).data();
      after_forward.push_back({CUBLASLT_EPILOGUE_RELU_AUX_BIAS, signs_});
    }
    after_forward.push_back({s_.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS});
    compile(forward_, {out, in}, {in, batch}, out, batch, after_forward);
    if (s_.training)
      compile(weight_gradient_, {out, batch}, {in, batch, true}, out, in,
              {Epilogue{CUBLASLT_EPILOGUE_BGRADA}});
    if (s_.input_signs != nullptr)
      after_backward.push_back({CUBLASLT_EPILOGUE_DRELU, const_cast<void*>(s_.input_signs)});
    if (s_.wants_input_gradient)
      compile(input_gradient_, {out, in, true}, {out, batch}, in, batch, after_backward);
  }

  std::string engine() const override {
    std::string text = std::string("cuBLASLt, forward ") + epilogue_name(forward_.epilogue);
    if (weight_gradient_.product)
      text += std::string(", weight gradient ") + epilogue_name(weight_gradient_.epilogue);
    if (input_gradient_.product)
      text += std::string(", input gradient ") + epilogue_name(input_gradient_.epilogue);
    return text;
  }

  std::string refusals() const override {
    std::string text;
    const auto add = [&](const char* pass, const std::string& refusals) {
      if (refusals.empty()) return;
      text += (text.empty() ? "" : "; ") + std::string(pass) + " " + refusals;
    };
    add("forward", forward_.refusals);
    add("weight gradient", weight_gradient_.refusals);
    add("input gradient", input_gradient_.refusals);
    return text;
  }

  const void* signs() const override {
    return forward_.epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS ? signs_ : nullptr;
  }
  bool passes_input_relu() const override {
    return input_gradient_.epilogue == CUBLASLT_EPILOGUE_DRELU;
  }

  std::size_t workspace() const override {
    std::size_t bytes = 0;
    const auto add = [&](const auto& p) {
      if (p.product) bytes = std::max(bytes, p.product->workspace());
    };
    add(forward_);
    add(weight_gradient_);
    add(input_gradient_);
    if (s_.training) bytes = std::max(bytes, sums_scratch() * sizeof(Wide<In>));
    return bytes;
  }

  void forward(Stream& stream, const In* input, const In* weights, const Out* biases, Out* output,
               void* workspace) override {
    forward_.product->run(stream, weights, input, output, biases, workspace);
    if (!forward_.fused()) add_biases(stream, rows(), s_.outputs, biases, s_.relu, output);
  }

  void input_gradient(Stream& stream, const In* d_output, const In* weights, In* d_input,
                      void* workspace) override {
    input_gradient_.product->run(stream, weights, d_output, d_input, nullptr, workspace);
  }

  void weight_gradient(Stream& stream, const In* input, const In* d_output, Wide<In>* d_weights,
                       Wide<In>* d_biases, void* workspace) override {
    weight_gradient_.product->run(stream, d_output, input, d_weights, d_biases, workspace);
    if (!weight_gradient_.fused())
      column_sums(stream, rows(), s_.outputs, d_output, d_biases,
                  static_cast<Wide<In>*>(workspace));
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(s_.batch); }
  std::size_t sums_scratch() const { return column_sums_scratch(rows(), s_.outputs); }

  MatmulSetting s_;
  void* signs_ = nullptr;
  FusedProduct<In, Out> forward_;
  FusedProduct<In, Wide<In>> weight_gradient_;
  FusedProduct<In, In> input_gradient_;
};

}  // namespace

template <class In, class Out>
std::unique_ptr<Matmul<In, Out>> make_matmul(const MatmulSetting& setting, DeviceMemory& memory,
                                             Stream& stream) {
  return std::make_unique<DenseProducts<In, Out>>(setting, memory, stream);
}

#define TOWERS_INSTANTIATE(In, Out)                                                          \
  template std::unique_ptr<Matmul<In, Out>> make_matmul(const MatmulSetting&, DeviceMemory&, \
                                                        Stream&);
TOWERS_FOR_EACH_PRODUCT(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
