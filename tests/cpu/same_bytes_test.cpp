// The same bytes on one vector target for any number of threads and devices.

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

// All that a few steps leave behind.
std::vector<float> outcome(const Options& options, const Net& net, int towers, int size,
                           const std::string& convolution = "auto",
                           Precision precision = Precision::fp32) {
  const std::unique_ptr<Backend> backend = make_backend(options);
  const std::unique_ptr<Towers> compiled =
      compile(*backend, net, towers, size, convolution, precision);
  const Batches batches(net, towers, size);
  std::vector<float> all;
  for (int s = 0; s < 3; ++s) {
    step(*compiled, batches.get());
    REQUIRE_FALSE(compiled->diverged());
    for (const Losses& losses : compiled->report().towers) {
      all.push_back(losses.cross_entropy);
      all.insert(all.end(), losses.weight_losses.begin(), losses.weight_losses.end());
      all.push_back(losses.total);
    }
  }
  const VariableLayout layout(net);
  std::vector<float> flat(layout.size());
  compiled->read_gradients(flat);
  all.insert(all.end(), flat.begin(), flat.end());
  compiled->read_variables(flat);
  all.insert(all.end(), flat.begin(), flat.end());
  compiled->read_moving_averages(flat);
  all.insert(all.end(), flat.begin(), flat.end());
  return all;
}

TEST_CASE("the same bytes for any number of threads and devices") {
  const Net net = small_cifar10_net();
  for (const int size : {5, 19}) {
    for (const int towers : {1, 3}) {
      const std::vector<float> expected = outcome({1, 1, "auto"}, net, towers, size);
      for (const int threads : {2, 3, 7})
        for (const int devices : {1, 2, 4}) {
          CAPTURE(size, towers, threads, devices);
          CHECK(same_bytes(outcome({threads, devices, "auto"}, net, towers, size), expected));
        }
    }
  }
}

TEST_CASE("the same bytes for any number of threads and devices in bf16 and fp64") {
  const Net net = small_cifar10_net();
  for (const auto& row :
       {std::pair{Precision::bf16, "auto"}, std::pair{Precision::bf16, "direct"},
        std::pair{Precision::bf16, "winograd4"}, std::pair{Precision::fp64, "auto"}})
    for (const int size : {5, 19}) {
      const Precision precision = row.first;
      const char* const convolution = row.second;
      const auto run = [&](const Options& options) {
        return outcome(options, net, 3, size, convolution, precision);
      };
      const std::vector<float> expected = run({1, 1, "auto"});
      for (const Options& options :
           {Options{2, 1, "auto"}, Options{7, 1, "auto"}, Options{3, 2, "auto"}}) {
        CAPTURE(to_string(precision), convolution, size, options.threads, options.devices);
        CHECK(same_bytes(run(options), expected));
      }
    }
}

TEST_CASE("fp64 gives the same bytes on every vector target") {
  const Net net = small_cifar10_net();
  const auto run = [&](const std::string& simd) {
    return outcome({2, 1, simd}, net, 1, 6, "auto", Precision::fp64);
  };
  const std::vector<float> expected = run("auto");
  for_each_target(
      [&](SimdTarget target) { CHECK(same_bytes(run(hwy::TargetName(target)), expected)); });
}

TEST_CASE("the same bytes on every vector target") {
  const Net net = small_cifar10_net();
  for_each_target([&](SimdTarget target) {
    const std::string simd = hwy::TargetName(target);
    for (const std::string& convolution : kConvolutions) {
      INFO(convolution);
      CHECK(same_bytes(outcome({3, 2, simd}, net, 2, 6, convolution),
                       outcome({1, 1, simd}, net, 2, 6, convolution)));
    }
  });
}

TEST_CASE("the same bytes with the whole CIFAR-10 net") {
  const Net net = cifar10_net(0.004);
  for (const std::string& convolution : kConvolutions) {
    INFO(convolution);
    const std::vector<float> expected = outcome({1, 1, "auto"}, net, 1, 37, convolution);
    CHECK(same_bytes(outcome({3, 1, "auto"}, net, 1, 37, convolution), expected));
    CHECK(same_bytes(outcome({20, 1, "auto"}, net, 1, 37, convolution), expected));
    CHECK(same_bytes(outcome({4, 4, "auto"}, net, 1, 37, convolution), expected));
  }
}

TEST_CASE("bytes do tell runs apart") {
  const Net net = small_cifar10_net();
  const auto run = [&](int size, const char* convolution) {
    return outcome({2, 1, "auto"}, net, 1, size, convolution);
  };
  CHECK_FALSE(same_bytes(run(5, "auto"), run(6, "auto")));
  CHECK_FALSE(same_bytes(run(5, "direct"), run(5, "winograd4")));
  CHECK_FALSE(same_bytes(run(5, "winograd2"), run(5, "winograd4")));
}

}  // namespace
}  // namespace towers::cpu::test
