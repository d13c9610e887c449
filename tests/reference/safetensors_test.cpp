#include "tests/reference/safetensors.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support.h"

namespace towers::reference {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + data;
}

TEST_CASE("a safetensors file is read by name and type") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  test::write_file(path, file_of(R"({"__metadata__":{"about":"x"},)"
                                 R"("b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                                 R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                                 std::string("\0\0\x80\x3f\1\2\3", 7)));
  const Safetensors file(path);
  CHECK(file.names() == std::vector<std::string>{"a", "b"});
  CHECK(file.floats("a") == std::vector<float>{1.0f});
  CHECK(file.shape("a").empty());
  CHECK(file.bytes("b") == std::vector<std::uint8_t>{1, 2, 3});
  CHECK_THROWS_WITH(file.floats("b"), Catch::EndsWith("b is U8, not F32"));
  CHECK_THROWS_WITH(file.floats("c"), Catch::EndsWith("no tensor c"));
}

TEST_CASE("a safetensors file that is cut says so") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  CHECK_THROWS_WITH(Safetensors(path), Catch::Contains("no safetensors file"));
  test::write_file(path, file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                 std::string(7, '\0')));
  CHECK_THROWS_WITH(Safetensors(path), Catch::EndsWith("a is cut"));
  test::write_file(path, std::string("\x40\0\0\0\0\0\0\0{}", 10));
  CHECK_THROWS_WITH(Safetensors(path), Catch::EndsWith("the header is cut"));
}

}  // namespace
}  // namespace towers::reference
