// What a GPU's matrix units make here, and what conv2's three passes make of that: one line of
// JSON, TFLOP/s each, for scripts/gpu_check.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/cudnn_graph.h"
#include "cuda/product.h"
#include "cuda/stopwatch.h"

namespace towers::cuda {
namespace {

constexpr double kShortest = 100;  // milliseconds that are timed: clocks settle, launches overlap
constexpr int kMatrixSide = 8192;
constexpr int kBatch = 2048;

// Milliseconds of one run among many.
template <class Run>
double milliseconds_of(Stream& stream, const Run& run) {
  Stopwatch watch;
  run();  // loads code
  for (int runs = 4;; runs *= 2) {
    watch.start(stream);
    for (int r = 0; r < runs; ++r) run();
    const double milliseconds = double{watch.stop(stream)};
    if (milliseconds >= kShortest) return milliseconds / runs;
  }
}

// Of either sign, 1 <= |value| < 2: multiplying zeros takes less power, and so less time.
void fill(Stream& stream, std::span<std::byte> device, Precision precision) {
  const bool half = precision == Precision::fp16, narrow = precision != Precision::fp32;
  const std::uint32_t kept = !narrow ? 0x807fffff : half ? 0x83ff83ff : 0x807f807f;
  const std::uint32_t ones = !narrow ? 0x3f800000 : half ? 0x3c003c00 : 0x3f803f80;
  std::mt19937 random(1);
  std::vector<std::uint32_t> words(std::size_t{1} << 20);
  for (std::uint32_t& word : words) word = (static_cast<std::uint32_t>(random()) & kept) | ones;
  const std::size_t size = words.size() * sizeof(std::uint32_t);
  for (std::size_t at = 0; at < device.size(); at += size)
    copy_to_device(stream, device.data() + at, words.data(), std::min(size, device.size() - at));
  stream.synchronize();
}

// TFLOP/s of the product of two square matrices stored as T.
template <class T>
double matrix_rate(Stream& stream, bool tf32 = false) {
  const Matrix square{kMatrixSide, kMatrixSide}, transposed{kMatrixSide, kMatrixSide, true};
  Product<T, T> product;
  if (!product.compile(transposed, square, kMatrixSide, kMatrixSide, {}, tf32, stream))
    throw Error("cuBLASLt has no algorithm for large matrices in " + to_string(precision_of<T>()) +
                ": " + product.refusal());
  DeviceMemory memory(stream.device());
  constexpr std::size_t kValues = std::size_t{kMatrixSide} * kMatrixSide;
  const auto a = memory.allocate<T>(kValues), b = memory.allocate<T>(kValues);
  T* const d = memory.allocate<T>(kValues).data();
  void* const workspace = memory.allocate<std::byte>(product.workspace()).data();
  for (const auto& operand : {a, b})
    fill(stream, std::as_writable_bytes(operand), precision_of<T>());
  const double milliseconds = milliseconds_of(
      stream, [&] { product.run(stream, a.data(), b.data(), d, nullptr, workspace); });
  return 2e-9 * kMatrixSide * kMatrixSide * kMatrixSide / milliseconds;
}

// TFLOP/s of a pass of conv2 in bf16.
double convolution_rate(Stream& stream, ConvolutionPass pass) {
  constexpr int kSide = 12, kChannels = 64, kWindow = 5;
  Conv2dSetting setting;
  setting.shape = {kBatch, {kSide, kSide, kChannels}, {kSide, kSide, kChannels}, kWindow, 1, 2, 2};
  setting.training = setting.wants_input_gradient = true;
  std::string refusal;
  const auto graph = CudnnGraph::compile(setting, Precision::bf16, pass, stream, refusal);
  if (!graph) throw Error("cuDNN has no engine for conv2 in bf16: " + refusal);
  constexpr std::size_t kBytes = 2, kValues = std::size_t{kBatch} * kSide * kSide * kChannels;
  constexpr std::size_t kWeights = std::size_t{kWindow} * kWindow * kChannels * kChannels;
  DeviceMemory memory(stream.device());
  const auto input = memory.allocate<std::byte>(kBytes * kValues);
  const auto output = memory.allocate<std::byte>(kBytes * kValues);
  const auto filter = memory.allocate<std::byte>(kBytes * kWeights);
  const auto biases = memory.allocate<std::byte>(kBytes * kChannels);
  for (const auto& tensor : {input, output, filter}) fill(stream, tensor, Precision::bf16);
  void* const workspace = memory.allocate<std::byte>(graph->workspace()).data();
  const double milliseconds = milliseconds_of(stream, [&] {
    if (pass == ConvolutionPass::forward_fused)
      graph->run(stream,
                 {{ConvolutionTensor::input, input.data()},
                  {ConvolutionTensor::filter, filter.data()},
                  {ConvolutionTensor::biases, biases.data()},
                  {ConvolutionTensor::output, output.data()}},
                 workspace);
    else
      graph->run(stream,
                 {{ConvolutionTensor::input, input.data()},
                  {ConvolutionTensor::filter, filter.data()},
                  {ConvolutionTensor::output, output.data()}},
                 workspace);
  });
  return 2e-9 * static_cast<double>(kValues) * kWindow * kWindow * kChannels / milliseconds;
}

void print_rates() {
  const DeviceGuard guard(0);
  Stream stream(0);
  cudaDeviceProp properties;
  TOWERS_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("{\"matrix_side\": %d, \"conv2_batch\": %d", kMatrixSide, kBatch);
  const auto print = [](const char* name, double rate) {
    std::printf(", \"%s\": %.1f", name, rate);
    std::fflush(stdout);
  };
  print("fp32", matrix_rate<float>(stream));
  if (properties.major >= 8) print("tf32", matrix_rate<float>(stream, true));
  print("fp16", matrix_rate<__half>(stream));
  if (properties.major >= 8) {
    print("bf16", matrix_rate<__nv_bfloat16>(stream));
    print("conv2_forward", convolution_rate(stream, ConvolutionPass::forward_fused));
    print("conv2_input_gradient", convolution_rate(stream, ConvolutionPass::input_gradient));
    print("conv2_weight_gradient", convolution_rate(stream, ConvolutionPass::weight_gradient));
  }
  std::printf("}\n");
}

}  // namespace
}  // namespace towers::cuda

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  try {
    towers::cuda::print_rates();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_rates: error: %s\n", error.what());
    return 1;
  }
}
