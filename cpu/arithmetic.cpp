#include "cpu/arithmetic.h"

#include "core/error.h"
#include "cpu/backend.h"
#include "cpu/onednn.h"

namespace towers::cpu {

Arithmetic choose_arithmetic(const CompileOptions& options) {
  const ConvolutionMethod convolution = parse_convolution_method(options.convolution);
  switch (options.precision) {
    case Precision::fp32:
      return {convolution, Products::fp32};
    case Precision::bf16: {
      // Who names an algorithm wants ours.
      const bool by_onednn = convolution == ConvolutionMethod::automatic && why_no_onednn().empty();
      return {convolution, by_onednn ? Products::bf16 : Products::bf16_emulated};
    }
    case Precision::fp64:
      if (convolution == ConvolutionMethod::winograd2 ||
          convolution == ConvolutionMethod::winograd4)
        throw UsageError("--precision=fp64 convolves directly; leave --convolution=" +
                         options.convolution + " out");
      return {ConvolutionMethod::direct, Products::fp32};
    case Precision::fp16:
      break;
  }
  throw Error(
      "--precision=fp16 (--use_fp16) is there for GPUs alone; on the CPU give --precision=bf16, "
      "or fp32");
}

std::string bf16_support() {
  const std::string reason = why_no_onednn();
  return reason.empty() ? onednn_version() : "emulated: " + reason;
}

std::string why_slow(const CompileOptions& options) {
  if (options.precision == Precision::fp64) return "plain loops, for checking";
  const Products products = choose_arithmetic(options).products;
  if (products == Products::fp32) return "";
  // Its direct convolutions take more multiplications than Winograd's of fp32, and without AMX
  // are not so much faster at each.
  if (products == Products::bf16) return onednn_has_amx() ? "" : "by oneDNN without AMX";
  const std::string reason = options.convolution == "auto"
                                 ? why_no_onednn()
                                 : "--convolution=" + options.convolution + " is of fp32 kernels";
  return "emulated in fp32: " + reason;
}

}  // namespace towers::cpu
