// What the CPU backend offers and refuses.

#include "cpu/backend.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "core/error.h"
#include "cpu/available_threads.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

TEST_CASE("threads are pinned to the processors that are allowed, or refused") {
  const int allowed = static_cast<int>(allowed_processors().size());
  REQUIRE(allowed > 0);
  CHECK(make_backend({allowed, 1, "auto", true})->devices().at(0).threads == allowed);
  CHECK_THROWS_WITH(make_backend({allowed + 1, 1, "auto", true}),
                    Catch::Contains("--pin_threads") && Catch::Contains("lower --compute_threads"));
  CHECK_THROWS_WITH(make_backend({0, allowed + 1, "auto", true}),
                    Catch::Contains("or --cpu_devices where that is more"));
}

TEST_CASE("pinning begins at any of the processors and goes round behind the last") {
  const std::vector<int> all = allowed_processors();
  const int count = static_cast<int>(all.size());
  for (int first = 0; first <= count; ++first)
    for (int t = 0; t < count; ++t)
      CHECK(processors_for(count, first).at(static_cast<std::size_t>(t)) ==
            all[static_cast<std::size_t>((first + t) % count)]);
  CHECK(processors_for(1, count - 1) == std::vector<int>{all.back()});
}

TEST_CASE("threads are shared out over the devices") {
  const std::unique_ptr<Backend> backend = make_backend({5, 3, "auto"});
  REQUIRE(backend->devices().size() == 3);
  int threads = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const Device& device = backend->devices()[d];
    CHECK(short_name(device) == "/cpu:" + std::to_string(d));
    CHECK_FALSE(device.description.empty());
    CHECK(device.threads >= 1);
    threads += device.threads;
  }
  CHECK(threads == 5);
  CHECK_THAT(backend->description(), Catch::EndsWith(", 5 threads on 3 devices"));
}

TEST_CASE("a device has at least one thread") {
  const std::unique_ptr<Backend> backend = make_backend({1, 3, "auto"});
  for (const Device& device : backend->devices()) CHECK(device.threads == 1);
}

TEST_CASE("threads default to those available") {
  CHECK(make_backend({})->devices().at(0).threads == available_threads());
}

TEST_CASE("options out of range are usage errors") {
  CHECK_THROWS_AS(make_backend({-1, 1, "auto"}), UsageError);
  CHECK_THROWS_AS(make_backend({1, 0, "auto"}), UsageError);
}

TEST_CASE("memory for batches is aligned and zeroed") {
  const std::unique_ptr<Backend> backend = make_backend({1, 1, "auto"});
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
    const std::shared_ptr<void> memory = backend->allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 64 == 0);
    const char* begin = static_cast<const char*>(memory.get());
    CHECK(std::all_of(begin, begin + bytes, [](char c) { return c == 0; }));
    std::memset(memory.get(), 1, bytes);
  }
}

TEST_CASE("what is not available is an error that names what is") {
  const std::unique_ptr<Backend> backend = make_backend({1, 1, "auto"});
  const Net net = small_cifar10_net();
  CompileOptions options;
  options.batch_size = 2;
  options.device_of_tower = {0};
  options.precision = Precision::fp16;
  const std::string no_fp16 =
      "--precision=fp16 (--use_fp16) is there for GPUs alone; on the CPU give --precision=bf16, or "
      "fp32";
  CHECK_THROWS_WITH(backend->compile(net, options), no_fp16);
  CHECK_THROWS_WITH(backend->compile_inference(net, 2, Precision::fp16, 0), no_fp16);
  options.precision = Precision::fp64;
  for (const char* convolution : {"winograd4", "winograd2"}) {
    options.convolution = convolution;
    CHECK_THROWS_AS(backend->compile(net, options), UsageError);
    CHECK_THROWS_WITH(backend->compile(net, options),
                      Catch::Contains("--precision=fp64") && Catch::Contains(convolution));
  }
  options.precision = Precision::fp32;
  options.convolution = "fft";
  CHECK_THROWS_AS(backend->compile(net, options), UsageError);
  CHECK_THROWS_WITH(backend->compile(net, options), Catch::Contains("winograd4"));
  for (const char* convolution : {"auto", "direct", "winograd4", "winograd2"}) {
    options.convolution = convolution;
    CHECK_NOTHROW(backend->compile(net, options));
  }
  options.device_of_tower = {1};
  CHECK_THROWS_WITH(backend->compile(net, options), Catch::Contains("/cpu:1"));
  options.device_of_tower = {};
  CHECK_THROWS_AS(backend->compile(net, options), UsageError);
  options.device_of_tower = {0};
  options.batch_size = 0;
  CHECK_THROWS_AS(backend->compile(net, options), UsageError);
  CHECK_THROWS_AS(backend->compile_inference(net, 2, Precision::fp32, -1), Error);
}

TEST_CASE("a pool too large for its bytes is refused") {
  Net net = small_cifar10_net();
  for (Layer& layer : net.layers)
    if (auto* pool = std::get_if<MaxPool>(&layer.op)) pool->size = 16;
  const std::unique_ptr<Backend> backend = make_backend({1, 1, "auto"});
  CHECK_THROWS_WITH(compile(*backend, net, 1, 2), Catch::Contains("16"));
}

TEST_CASE("wrong batches and labels are refused before anything is computed") {
  const Net net = small_cifar10_net();
  const std::unique_ptr<Backend> backend = make_backend({1, 1, "auto"});
  const std::unique_ptr<Towers> towers = compile(*backend, net, 2, 3);
  Batches batches(net, 2, 3);
  CHECK_THROWS_AS(towers->compute_gradients(batches.get().first(1), false), std::invalid_argument);
  CHECK_THROWS_AS(towers->compute_gradients(Batches(net, 2, 4).get(), false),
                  std::invalid_argument);
  for (const std::int32_t label : {-1, 10}) {
    batches.labels(1)[2] = label;
    CHECK_THROWS_WITH(towers->compute_gradients(batches.get(), false),
                      Catch::Contains("label " + std::to_string(label)));
  }
  batches.labels(1)[2] = 9;
  CHECK_NOTHROW(step(*towers, batches.get()));
}

TEST_CASE("activations are there only where they were kept") {
  const Net net = small_cifar10_net();
  const std::unique_ptr<Backend> backend = make_backend({2, 1, "auto"});
  const std::unique_ptr<Towers> towers = compile(*backend, net, 1, 3);
  const Batches batches(net, 1, 3);
  CHECK_THROWS_AS(towers->activations("conv1"), std::invalid_argument);
  towers->compute_gradients(batches.get(), true);
  CHECK(towers->activations("conv1").size() == 3 * 24 * 24 * 13);
  CHECK(towers->activations("softmax_linear").size() == 30);
  CHECK_THROWS_AS(towers->activations("pool1"), std::invalid_argument);
  CHECK_THROWS_AS(towers->activations("conv9"), std::invalid_argument);
  towers->compute_gradients(batches.get(), false);
  CHECK_THROWS_AS(towers->activations("conv1"), std::invalid_argument);
}

TEST_CASE("towers and inference outlive their backend") {
  const Net net = small_cifar10_net();
  std::unique_ptr<Backend> backend = make_backend({2, 1, "auto"});
  const std::unique_ptr<Towers> towers = compile(*backend, net, 1, 3);
  const std::unique_ptr<Inference> inference =
      backend->compile_inference(net, 3, Precision::fp32, 0);
  backend.reset();
  const Batches batches(net, 1, 3);
  step(*towers, batches.get());
  std::vector<float> logits(30);
  inference->logits(batches.get()[0], logits);
  CHECK_FALSE(towers->diverged());
}

}  // namespace
}  // namespace towers::cpu::test
