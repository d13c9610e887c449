#include "cuda/precision.h"

#include <charconv>

#include "core/error.h"

namespace towers::cuda {

void check_precision(Precision precision, const Device& gpu) {
  // Tensor cores multiply bfloat16 from Ampere on; cuDNN and cuBLASLt have nothing for older ones.
  constexpr int kFirstWithBfloat16 = 8;
  const std::string& capability = gpu.compute_capability;
  int major = 0;
  std::from_chars(capability.data(), capability.data() + capability.size(), major);
  if (precision == Precision::bf16 && major < kFirstWithBfloat16)
    throw Error("--precision=bf16 needs a GPU of compute capability 8.0 or newer, and " +
                short_name(gpu) + " (" + gpu.description + ") has " + capability +
                "; use --precision=fp16 or fp32");
}

}  // namespace towers::cuda
