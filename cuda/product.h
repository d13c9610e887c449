#pragma once
// A product of two matrices by cuBLASLt, with what follows it in the same kernel: D = op(A) *
// op(B), all column-major. For matmul.cpp and what measures; includes cuBLASLt's header.

#include <cublasLt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "cuda/runtime.h"
#include "cuda/storage.h"

namespace towers::cuda {

// Throws Error with the call and what cuBLASLt says.
void check_cublas(cublasStatus_t status, const char* call);
#define TOWERS_CUBLAS(call) ::towers::cuda::check_cublas((call), #call)

// One handle per device, for the life of the process.
cublasLtHandle_t cublas_of(const Stream& stream);

// Views of the flat buffers start at multiples of 16 values.
template <class T>
constexpr std::uint32_t kAlignment = 16 * sizeof(T);

template <class T>
constexpr cudaDataType_t cublas_type() {
  if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  if constexpr (std::is_same_v<T, __half>) return CUDA_R_16F;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return CUDA_R_16BF;
  return CUDA_R_32F;
}

// What is promised to be exact is asked for as such: the environment (NVIDIA_TF32_OVERRIDE,
// CUBLAS_EMULATE_SINGLE_PRECISION, ..._DOUBLE_PRECISION) may replace the arithmetic of the types
// without PEDANTIC. 16-bit inputs need those, for tensor cores.
template <class T>
constexpr cublasComputeType_t compute_type(bool allow_tf32) {
  if constexpr (std::is_same_v<T, double>) return CUBLAS_COMPUTE_64F_PEDANTIC;
  if constexpr (kNarrow<T>) return CUBLAS_COMPUTE_32F;
  return allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
}

template <class T, cublasStatus_t (*destroy)(T)>
struct CublasOwner {
  T value = nullptr;
  CublasOwner() = default;
  CublasOwner(const CublasOwner&) = delete;
  CublasOwner& operator=(const CublasOwner&) = delete;
  ~CublasOwner() {
    if (value != nullptr) destroy(value);
  }
};

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
inline std::int64_t column_of_signs(int rows) {
  constexpr int kMultiple = 128;  // as cuBLASLt wants them
  return std::int64_t{rows + kMultiple - 1} / kMultiple * kMultiple;
}
inline std::size_t bytes_of_signs(int rows, int columns) {
  return static_cast<std::size_t>(column_of_signs(rows) / 8) * static_cast<std::size_t>(columns);
}

// A and B are stored as In, D as Out; the epilogue adds or makes a vector of biases of D's type.
template <class In, class Out>
class Product {
 public:
  // False where cuBLASLt has no algorithm for it, or one that does not start; it is tried once, on
  // zeros, and may write the epilogue's signs.
  bool compile(const Matrix& a, const Matrix& b, int rows, int columns, const Epilogue& epilogue,
               bool allow_tf32, Stream& stream) {
    describe(a, b, rows, columns, epilogue, allow_tf32);
    return choose(stream) && starts(a, b, rows, columns, stream);
  }

  // What cuBLASLt said, where compile was false.
  std::string refusal() const {
    return status_ == CUBLAS_STATUS_SUCCESS ? "no algorithm" : cublasLtGetStatusString(status_);
  }

  std::size_t workspace() const { return choice_.workspaceSize; }  // bytes

  // biases: read or written by the epilogue; null without one.
  void run(Stream& stream, const In* a, const In* b, Out* d, const Out* biases, void* workspace) {
    check_cublas(enqueue(stream, a, b, d, biases, workspace), "cublasLtMatmul");
  }

 private:
  static constexpr std::size_t kLargestWorkspace = std::size_t{32} << 20;

  void describe(const Matrix& a, const Matrix& b, int rows, int columns, const Epilogue& epilogue,
                bool allow_tf32) {
    TOWERS_CUBLAS(cublasLtMatmulDescCreate(&description_.value, compute_type<In>(allow_tf32),
                                           cublas_type<Wide<In>>()));
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
  }

  bool choose(Stream& stream) {
    CublasOwner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    TOWERS_CUBLAS(cublasLtMatmulPreferenceCreate(&preference.value));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      TOWERS_CUBLAS(
          cublasLtMatmulPreferenceSetAttribute(preference.value, which, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kLargestWorkspace);
    // Where a sum is made in parts, the parts are not rounded to 16 bits either.
    if constexpr (kNarrow<Out>)
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(which, std::min(kAlignment<In>, kAlignment<Out>));
    int found = 0;
    status_ =
        cublasLtMatmulAlgoGetHeuristic(cublas_of(stream), description_.value, a_.value, b_.value,
                                       d_.value, d_.value, preference.value, 1, &choice_, &found);
    if (status_ == CUBLAS_STATUS_SUCCESS && found > 0) status_ = choice_.state;
    return status_ == CUBLAS_STATUS_SUCCESS && found > 0;
  }

  bool starts(const Matrix& a, const Matrix& b, int rows, int columns, Stream& stream) {
    DeviceMemory memory(stream.device());  // freed when the device has done its work
    const auto values = [&](auto type, int m, int n) {
      return memory
          .allocate<typename decltype(type)::type>(static_cast<std::size_t>(m) *
                                                   static_cast<std::size_t>(n))
          .data();
    };
    constexpr std::type_identity<In> in;
    constexpr std::type_identity<Out> out;
    status_ = enqueue(stream, values(in, a.rows, a.columns), values(in, b.rows, b.columns),
                      values(out, rows, columns), values(out, rows, 1),
                      memory.allocate<std::byte>(workspace()).data());
    return status_ == CUBLAS_STATUS_SUCCESS;
  }

  cublasStatus_t enqueue(Stream& stream, const In* a, const In* b, Out* d, const Out* biases,
                         void* workspace) {
    if (has_biases_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, biases);
    const Wide<In> one = 1, zero = 0;
    const DeviceGuard guard(stream.device());
    return cublasLtMatmul(cublas_of(stream), description_.value, &one, a, a_.value, b, b_.value,
                          &zero, d, d_.value, d, d_.value, &choice_.algo, workspace,
                          choice_.workspaceSize, stream.get());
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, T value) {
    TOWERS_CUBLAS(cublasLtMatmulDescSetAttribute(description_.value, which, &value, sizeof value));
  }

  using Layout = CublasOwner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  template <class T>
  static void make_layout(Layout& layout, int rows, int columns) {
    TOWERS_CUBLAS(cublasLtMatrixLayoutCreate(&layout.value, cublas_type<T>(),
                                             static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), rows));
  }

  CublasOwner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description_;
  Layout a_, b_, d_;
  cublasLtMatmulHeuristicResult_t choice_{};
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  bool has_biases_ = false;
};

}  // namespace towers::cuda
