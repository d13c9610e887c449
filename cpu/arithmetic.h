#pragma once
// How the products of a plan are computed: by which algorithm, of which operands.

#include <string>

#include "core/backend.h"
#include "cpu/convolution_method.h"

namespace towers::cpu {

// What convolutions and dense layers multiply. Sums are of fp32 always.
enum class Products {
  fp32,
  bf16,           // by oneDNN
  bf16_emulated,  // operands rounded to bf16, the kernels of fp32
};

struct Arithmetic {
  ConvolutionMethod convolution = ConvolutionMethod::automatic;
  Products products = Products::fp32;
};

// By options.precision and options.convolution. Throws Error for a precision that the CPU does not
// have, UsageError for an unknown convolution or one that the precision does not go with.
Arithmetic choose_arithmetic(const CompileOptions& options);

// Why the precision takes longer here than fp32 would; empty where it need not.
std::string why_slow(const CompileOptions& options);

}  // namespace towers::cpu
