// cuDNN says which engines it has for a GPU that is only described, so the graphs that the module
// builds are checked against the real library where there is no GPU.

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/cudnn_graph.h"
#include "cuda/product.h"
#include "tests/support.h"

namespace towers::cuda {
namespace {

struct Gpu {
  const char* name;
  int capability;                                       // 900 is 9.0
  int multiprocessors, shared_memory, threads, blocks;  // of a multiprocessor
};
constexpr Gpu kGpus[] = {
    {"Tesla T4", 750, 40, 65536, 1024, 16},       {"NVIDIA A100", 800, 108, 166912, 2048, 32},
    {"NVIDIA L4", 890, 58, 101376, 1536, 24},     {"NVIDIA H200", 900, 132, 232448, 2048, 32},
    {"NVIDIA B200", 1000, 148, 232448, 2048, 32},
};

std::string properties(const Gpu& gpu) {
  const auto number = [](const char* key, long long value) {
    return std::string(", \"") + key + "\": " + std::to_string(value);
  };
  return R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64])" +
         number("regsPerBlock", 65536) + number("multiProcessorCount", gpu.multiprocessors) +
         number("warpSize", 32) + number("maxSharedMemoryPerBlock", 49152) +
         number("maxSharedMemoryPerBlockOptin", gpu.shared_memory) +
         number("reservedSharedMemoryPerBlock", 1024) + number("maxRegistersPerSM", 65536) +
         number("maxCtasPerSM", gpu.blocks) + number("maxThreadsPerBlock", 1024) +
         number("maxThreadsPerSM", gpu.threads) + number("pciDeviceId", 0) +
         number("isTccDriver", 0) + number("supportCoopLaunch", 1) +
         number("smClockRateKHz", 1500000) + number("memClockRateKHz", 2000000) +
         number("l2CacheSize", 40 << 20) + number("deviceVer", gpu.capability) +
         number("driverVer", 13000) + number("driverVersion", 13000) + number("cudaDeviceId", 0) +
         number("totalGlobalMem", 16LL << 30) + ", \"deviceName\": \"" + gpu.name + "\"}";
}

Conv2dSetting convolution(int batch, int side, int inputs, int outputs, int kernel = 5) {
  Conv2dSetting setting;
  const int pad = (kernel - 1) / 2;
  setting.shape = {batch, {side, side, inputs}, {side, side, outputs}, kernel, 1, pad, pad};
  setting.training = setting.wants_input_gradient = true;
  return setting;
}

constexpr ConvolutionPass kPasses[] = {ConvolutionPass::forward_fused, ConvolutionPass::forward,
                                       ConvolutionPass::input_gradient,
                                       ConvolutionPass::weight_gradient};

std::vector<std::string> engines(const Conv2dSetting& setting, ConvolutionPass pass, const Gpu& gpu,
                                 Precision precision = Precision::fp32) {
  return engines_for(setting, precision, pass, properties(gpu));
}

// Later versions than 9.19 link some of their engines to the driver's library.
bool skipped_for_want_of_a_driver() {
  if (void* driver = ::dlopen("libcuda.so.1", RTLD_NOW)) {
    ::dlclose(driver);
    return false;
  }
  try {
    engines(convolution(1, 12, 64, 64), ConvolutionPass::forward, kGpus[3]);
    return false;
  } catch (const Error& error) {
    if (std::string(error.what()).find("SUBLIBRARY_LOADING_FAILED") == std::string::npos) throw;
  }
  test::skip("this cuDNN loads no engines without the driver's libcuda.so.1");
  return true;
}

TEST_CASE("cuDNN has an engine for every pass of the CIFAR-10 net's convolutions, on every GPU") {
  if (skipped_for_want_of_a_driver()) return;
  for (const Gpu& gpu : kGpus)
    for (const int batch : {1, 32, 128, 2048})
      for (const bool deterministic : {false, true})
        for (Conv2dSetting setting :
             {convolution(batch, 24, 3, 64), convolution(batch, 12, 64, 64)})
          for (const ConvolutionPass pass : kPasses) {
            setting.deterministic = deterministic;
            CAPTURE(gpu.name, batch, deterministic, setting.shape.input.channels,
                    static_cast<int>(pass));
            CHECK_FALSE(engines(setting, pass, gpu).empty());
          }
}

TEST_CASE(
    "in 16 bits too, in float16 on every GPU and in bfloat16 from compute capability 8.0 on") {
  if (skipped_for_want_of_a_driver()) return;
  for (const Gpu& gpu : kGpus)
    for (const Precision precision : {Precision::bf16, Precision::fp16})
      for (const int batch : {1, 128, 2048})
        for (const bool deterministic : {false, true})
          for (Conv2dSetting setting :
               {convolution(batch, 24, 3, 64), convolution(batch, 12, 64, 64)})
            for (const ConvolutionPass pass : kPasses) {
              setting.deterministic = deterministic;
              CAPTURE(gpu.name, to_string(precision), batch, deterministic,
                      setting.shape.input.channels, static_cast<int>(pass));
              const bool none = precision == Precision::bf16 && gpu.capability < 800;
              CHECK(engines(setting, pass, gpu, precision).empty() == none);
            }
}

TEST_CASE("where cuDNN has no engine, the beginning of its own words is kept, in a line") {
  if (skipped_for_want_of_a_driver()) return;
  std::string refusal;
  engines_for(convolution(128, 12, 64, 64), Precision::bf16, ConvolutionPass::forward,
              properties(kGpus[0]), &refusal);
  CHECK_THAT(refusal, Catch::Contains("CUDNN_STATUS_NOT_SUPPORTED"));
  CHECK(refusal.size() < 320);
  CHECK(refusal.find('\n') == std::string::npos);
}

TEST_CASE("without TF32 fewer engines are left, and with it there are more") {
  if (skipped_for_want_of_a_driver()) return;
  const Conv2dSetting exact = convolution(128, 12, 64, 64);
  Conv2dSetting tf32 = exact;
  tf32.allow_tf32 = true;
  const Gpu& h200 = kGpus[3];
  for (const ConvolutionPass pass : kPasses) {
    CAPTURE(static_cast<int>(pass));
    CHECK(engines(exact, pass, h200).size() < engines(tf32, pass, h200).size());
  }
}

TEST_CASE("a deterministic choice leaves out engines that are not") {
  if (skipped_for_want_of_a_driver()) return;
  const Conv2dSetting any = convolution(128, 12, 64, 64);
  Conv2dSetting deterministic = any;
  deterministic.deterministic = true;
  const Gpu& h200 = kGpus[3];
  CHECK(engines(deterministic, ConvolutionPass::weight_gradient, h200).size() <
        engines(any, ConvolutionPass::weight_gradient, h200).size());
}

TEST_CASE("an engine is found again by its name, without building the others") {
  if (skipped_for_want_of_a_driver()) return;
  const Conv2dSetting setting = convolution(128, 12, 64, 64);
  const Gpu& h200 = kGpus[3];
  for (const ConvolutionPass pass : kPasses) {
    const std::vector<std::string> names = engines(setting, pass, h200);
    CAPTURE(static_cast<int>(pass), names);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    for (const std::string& name : {names.front(), names.back()})
      CHECK(has_engine(setting, Precision::fp32, pass, properties(h200), name));
    CHECK_FALSE(has_engine(setting, Precision::fp32, pass, properties(h200), "eng999_k1=2"));
  }
}

TEST_CASE("cuBLASLt is asked for products that no environment makes less exact, but where told") {
  for (const bool tf32 : {false, true}) {
    CHECK(compute_type<double>(tf32) == CUBLAS_COMPUTE_64F_PEDANTIC);
    CHECK(compute_type<float>(tf32) ==
          (tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC));
    // Pedantic ones of 16 bits would do without tensor cores.
    CHECK(compute_type<__half>(tf32) == CUBLAS_COMPUTE_32F);
    CHECK(compute_type<__nv_bfloat16>(tf32) == CUBLAS_COMPUTE_32F);
  }
}

TEST_CASE("all that decides which engine is the fastest is in its key") {
  const Conv2dSetting setting = convolution(128, 12, 64, 64);
  const auto key = [](const Conv2dSetting& s, Precision precision = Precision::fp32,
                      ConvolutionPass pass = ConvolutionPass::forward_fused) {
    return engine_key("NVIDIA H200 9.0, cuDNN 91900", s, precision, pass);
  };
  CHECK(key(setting) ==
        "NVIDIA H200 9.0, cuDNN 91900, forward with biases with relu, fp32, "
        "128 x 12x12x64 to 12x12x64, window 5 by 1 from -2 -2");
  std::set<std::string> keys{key(setting), engine_key("NVIDIA H100", setting, Precision::fp32,
                                                      ConvolutionPass::forward_fused)};
  std::size_t count = keys.size();
  const auto other = [&](const std::string& k) {
    keys.insert(k);
    CHECK(keys.size() == ++count);
  };
  for (const Precision precision : {Precision::bf16, Precision::fp16})
    other(key(setting, precision));
  for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::input_gradient,
                                     ConvolutionPass::weight_gradient})
    other(key(setting, Precision::fp32, pass));
  Conv2dSetting changed = setting;
  changed.relu = false, other(key(changed));
  changed = setting, changed.allow_tf32 = true, other(key(changed));
  other(key(convolution(64, 12, 64, 64)));
  other(key(convolution(128, 24, 64, 64)));
  other(key(convolution(128, 12, 32, 64)));
  other(key(convolution(128, 12, 64, 32)));
  other(key(convolution(128, 12, 64, 64, 3)));
  changed = setting, changed.shape.stride = 2, other(key(changed));
  changed = setting, changed.shape.pad_top = 1, other(key(changed));
  changed = setting, changed.shape.pad_left = 1, other(key(changed));
}

}  // namespace
}  // namespace towers::cuda
