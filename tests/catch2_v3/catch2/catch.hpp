#pragma once
// Catch2 3 under the name and with the spellings of Catch2 2.13, which Debian 12 has and the tests
// are written for. On the include path only where CMake finds version 3.

#include <catch2/catch_all.hpp>
#include <string>

namespace Catch {
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::Matches;
using Matchers::StartsWith;
inline Matchers::StringContainsMatcher Contains(const std::string& text) {
  return Matchers::ContainsSubstring(text);
}
}  // namespace Catch

using Catch::Approx;
