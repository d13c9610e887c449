#include "tests/backend/under_test.h"

#include <catch2/catch.hpp>

#include "tests/support.h"

namespace towers::test {

void for_each_backend(const std::function<void(const BackendUnderTest& row, Backend& backend)>& f) {
  const BackendList list = backends_under_test();
  if (list.backends.empty()) return skip(list.why_none);
  for (const BackendUnderTest& row : list.backends) {
    INFO("backend: " << row.name);
    f(row, *row.make());
  }
}

void for_each_thorough_backend(
    const std::function<void(const BackendUnderTest& row, Backend& backend)>& f) {
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    if (row.thorough) f(row, backend);
  });
}

}  // namespace towers::test
