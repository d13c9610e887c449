// The CIFAR-10 net itself against the double-precision reference.

#include <catch2/catch.hpp>

#include "core/models/cifar10.h"
#include "tests/backend/problem.h"

namespace towers::test {
namespace {

void check_sizes(const BackendUnderTest& row, Backend& backend, std::initializer_list<int> sizes,
                 int steps) {
  for (const int size : sizes) {
    INFO("batch " << size);
    check_against_reference(row, backend, draw_problem(cifar10_net(), size), steps);
  }
}

TEST_CASE("the CIFAR-10 net, two steps of small batches") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    check_sizes(row, backend, {1, 3}, 2);
  });
}

TEST_CASE("the CIFAR-10 net, batches that divide and that do not") {
  for_each_thorough_backend([](const BackendUnderTest& row, Backend& backend) {
    check_sizes(row, backend, {16, 37}, 1);
  });
}

TEST_CASE("the CIFAR-10 net, a batch of 128") {
  for_each_thorough_backend(
      [](const BackendUnderTest& row, Backend& backend) { check_sizes(row, backend, {128}, 1); });
}

}  // namespace
}  // namespace towers::test
