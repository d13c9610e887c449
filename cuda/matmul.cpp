// Dense layers by cuBLASLt, which is column-major: our row-major [rows][columns] is its columns x
// rows, so output = input * weights becomes output' = weights' * input', without moving anything.

#include "cuda/matmul.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/kernels.h"

namespace towers::cuda {
namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{32} << 20;
// Views of the flat buffers start at multiples of 16 values.
template <class T>
constexpr std::uint32_t kAlignment = 16 * sizeof(T);

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string(call) + ": " + cublasLtGetStatusString(status));
}
#define TOWERS_CUBLAS(call) check_cublas((call), #call)

// One handle per device, for the life of the process.
cublasLtHandle_t handle_of(const Stream& stream) {
  static std::map<int, cublasLtHandle_t> handles;
  cublasLtHandle_t& handle = handles[stream.device()];
  if (handle == nullptr) TOWERS_CUBLAS(cublasLtCreate(&handle));
  return handle;
}

template <class T>
constexpr cudaDataType_t data_type() {
  if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  if constexpr (std::is_same_v<T, __half>) return CUDA_R_16F;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return CUDA_R_16BF;
  return CUDA_R_32F;
}

template <class T>
cublasComputeType_t compute_type(bool allow_tf32) {
  if constexpr (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F;
  if constexpr (kNarrow<T>) return CUBLAS_COMPUTE_32F;
  return allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
}

template <class T, cublasStatus_t (*destroy)(T)>
struct Owner {
  T value = nullptr;
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (value != nullptr) destroy(value);
  }
};
using Description = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

struct Matrix {
  int rows = 0, columns = 0;  // as stored
  bool transposed = false;
};

// What follows a product. signs: of D's values, a bit each, written or read by the epilogues that
// have to do with them.
struct Epilogue {
  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  void* signs = nullptr;

  bool has_biases() const {
    return kind != CUBLASLT_EPILOGUE_DEFAULT && kind != CUBLASLT_EPILOGUE_DRELU;
  }
};

// Bits from one of D's columns to the next.
std::int64_t column_of_signs(int rows) {
  constexpr int kMultiple = 128;  // as cuBLASLt wants them
  return std::int64_t{rows + kMultiple - 1} / kMultiple * kMultiple;
}
std::size_t bytes_of_signs(int rows, int columns) {
  return static_cast<std::size_t>(column_of_signs(rows) / 8) * static_cast<std::size_t>(columns);
}

// D = op(A) * op(B), column-major, A and B of type In; the epilogue adds or makes a vector of
// biases of D's type.
template <class In, class Out>
class Product {
 public:
  // False where cuBLASLt has no algorithm for it.
  bool compile(const Matrix& a, const Matrix& b, int rows, int columns, const Epilogue& epilogue,
               bool allow_tf32, const Stream& stream) {
    TOWERS_CUBLAS(cublasLtMatmulDescCreate(&description_.value, compute_type<In>(allow_tf32),
                                           data_type<Wide<In>>()));
    set(CUBLASLT_MATMUL_DESC_TRANSA, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.kind);
    if (epilogue.signs != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, epilogue.signs);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, column_of_signs(rows));
    }
    has_biases_ = epilogue.has_biases();
    // An address of the right alignment, for the choice alone.
    if (has_biases_)
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
          reinterpret_cast<const Out*>(std::uintptr_t{kAlignment<Out>}));
    make_layout<In>(a_, a.rows, a.columns);
    make_layout<In>(b_, b.rows, b.columns);
    make_layout<Out>(d_, rows, columns);

    Preference preference;
    TOWERS_CUBLAS(cublasLtMatmulPreferenceCreate(&preference.value));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      TOWERS_CUBLAS(
          cublasLtMatmulPreferenceSetAttribute(preference.value, which, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kLargestWorkspace);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(which, std::min(kAlignment<In>, kAlignment<Out>));
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_of(stream), description_.value, a_.value, b_.value,
                                       d_.value, d_.value, preference.value, 1, &choice_, &found);
    return status == CUBLAS_STATUS_SUCCESS && found > 0 && choice_.state == CUBLAS_STATUS_SUCCESS;
  }

  std::size_t workspace() const { return choice_.workspaceSize; }

  // biases: read or written by the epilogue; null without one.
  void run(Stream& stream, const In* a, const In* b, Out* d, const Out* biases, void* workspace) {
    if (has_biases_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, biases);
    const Wide<In> one = 1, zero = 0;
    const DeviceGuard guard(stream.device());
    TOWERS_CUBLAS(cublasLtMatmul(handle_of(stream), description_.value, &one, a, a_.value, b,
                                 b_.value, &zero, d, d_.value, d, d_.value, &choice_.algo,
                                 workspace, choice_.workspaceSize, stream.get()));
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, T value) {
    TOWERS_CUBLAS(cublasLtMatmulDescSetAttribute(description_.value, which, &value, sizeof value));
  }
  template <class T>
  static void make_layout(Layout& layout, int rows, int columns) {
    TOWERS_CUBLAS(cublasLtMatrixLayoutCreate(&layout.value, data_type<T>(),
                                             static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), rows));
  }

  Description description_;
  Layout a_, b_, d_;
  cublasLtMatmulHeuristicResult_t choice_{};
  bool has_biases_ = false;
};

// A product with the first of the epilogues that cuBLASLt has for the shape, else without one.
template <class In, class Out>
struct FusedProduct {
  std::unique_ptr<Product<In, Out>> product;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;

  FusedProduct() = default;
  FusedProduct(const Matrix& a, const Matrix& b, int rows, int columns,
               std::vector<Epilogue> epilogues, bool allow_tf32, const Stream& stream) {
    epilogues.push_back({});
    for (const Epilogue& candidate : epilogues) {
      product = std::make_unique<Product<In, Out>>();
      epilogue = candidate.kind;
      if (product->compile(a, b, rows, columns, candidate, allow_tf32, stream)) return;
    }
    throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(rows) + " x " +
                std::to_string(columns) + " values in " + to_string(precision_of<In>()) +
                " on this GPU");
  }
  bool fused() const { return epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
};

template <class In, class Out>
class DenseProducts final : public Matmul<In, Out> {
 public:
  DenseProducts(const MatmulSetting& setting, DeviceMemory& memory, const Stream& stream)
      : s_(setting) {
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
