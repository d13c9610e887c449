// After compilation a step allocates nothing.

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/cpu/support.h"
#include "tests/support.h"

#ifndef TOWERS_SANITIZED

namespace {
std::atomic<long> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace towers::cpu::test {
namespace {

TEST_CASE("a step allocates nothing") {
  const Net net = small_cifar10_net();
  const std::unique_ptr<Backend> backend = make_backend({4, 2, "auto"});
  const Batches batches(net, 3, 5);
  std::vector<std::pair<Precision, std::string>> kinds{{Precision::fp64, "auto"}};
  for (const std::string& convolution : kConvolutions) {
    kinds.emplace_back(Precision::fp32, convolution);
    kinds.emplace_back(Precision::bf16, convolution);  // emulated: oneDNN allocates at each call
  }
  for (const auto& [precision, convolution] : kinds) {
    CAPTURE(to_string(precision), convolution);
    const std::unique_ptr<Towers> towers = compile(*backend, net, 3, 5, convolution, precision);
    const long before = allocations;
    for (int s = 0; s < 3; ++s) step(*towers, batches.get());
    towers->compute_gradients(batches.get(), true);
    const long after = allocations;  // CHECK allocates
    CHECK(towers->report().towers.size() == 3);
    CHECK(after - before == 0);
  }
}

TEST_CASE("an inference allocates nothing") {
  const Net net = small_cifar10_net();
  const std::unique_ptr<Backend> backend = make_backend({2, 1, "auto"});
  const std::unique_ptr<Inference> inference =
      backend->compile_inference(net, 5, Precision::fp32, 0);
  const Batches batches(net, 1, 5);
  std::vector<float> logits(50);
  const long before = allocations;
  inference->logits(batches.get()[0], logits);
  const long after = allocations;
  CHECK(after - before == 0);
}

}  // namespace
}  // namespace towers::cpu::test

#endif
