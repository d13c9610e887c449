// Files in the safetensors format: what is written, and files that are not what they seem.
#include "data/safetensors.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/data/output_support.h"
#include "tests/support.h"

using namespace towers;
using namespace towers::data;
using namespace towers::test;

namespace {

const std::vector<float> kFour = {1, -2, 3.5f, 0};
const std::vector<float> kOne = {7};

std::string framed(const std::string& header, const std::string& bytes) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + bytes;
}

// What reading a file of this content complains of.
std::string complaint_about(const std::string& content) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_file(path, content);
  const std::string message = error_of([&] { SafetensorsReader reader(path); });
  if (!message.empty()) CHECK(contains(message, path.string()));
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

std::string entry(const std::string& type, const std::string& shape, const std::string& places) {
  return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + places +
         "}}";
}

}  // namespace

TEST_CASE("safetensors come back, with their metadata") {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_safetensors(path,
                    {float_tensor("w", {2, 2}, kFour), float_tensor("b/a", {1}, kOne),
                     float_tensor("scalar", {}, kOne)},
                    {{"global_step", "12"}, {"text", "two\nlines, \"quoted\""}});
  const SafetensorsReader reader(path);
  REQUIRE(reader.tensors().size() == 3);
  CHECK(reader.tensors()[0].name == "b/a");
  CHECK(reader.find("w")->shape == std::vector<std::int64_t>{2, 2});
  CHECK(reader.find("scalar")->shape.empty());
  CHECK(reader.find("v") == nullptr);
  std::vector<float> values(4);
  reader.read("w", values);
  CHECK(values == kFour);
  CHECK(reader.metadata().at("text") == "two\nlines, \"quoted\"");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a.safetensors"});
}

TEST_CASE("the header is one of the format: its length first, tensors aligned and without gaps") {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_safetensors(path, {float_tensor("w", {4}, kFour), float_tensor("b", {1}, kOne)}, {});
  const std::string file = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  CHECK(length % 8 == 0);
  REQUIRE(file.size() == 8 + length + 20);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  CHECK(header["w"] ==
        nlohmann::json::parse(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"));
  CHECK(header["b"]["data_offsets"] == nlohmann::json::parse("[16,20]"));
  CHECK_FALSE(header.contains("__metadata__"));
  CHECK(std::memcmp(file.data() + 8 + length, kFour.data(), 16) == 0);
}

TEST_CASE("other types are read as numbers, or named where they are none") {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_file(path, framed(entry("BF16", "[2]", "[0,4]"), std::string("\x80\x3f\x00\xc0", 4)));
  std::vector<float> values(2);
  SafetensorsReader(path).read("a", values);
  CHECK(values == std::vector<float>{1, -2});
  std::vector<float> three(3);
  CHECK(contains(error_of([&] { SafetensorsReader(path).read("a", three); }), "as 3 numbers"));
  write_file(path, framed(entry("BOOL", "[2]", "[0,2]"), std::string(2, '\1')));
  CHECK(contains(error_of([&] { SafetensorsReader(path).read("a", values); }), "type BOOL"));
  CHECK(contains(error_of([&] { SafetensorsReader(path).read("b", values); }), "no tensor b"));
}

TEST_CASE("damaged safetensors files end in a line that names the file") {
  const std::string good = entry("F32", "[2]", "[0,8]");
  CHECK(complaint_about(framed(good, std::string(8, '\0'))).empty());
  CHECK(contains(complaint_about(""), "too short"));
  CHECK(contains(complaint_about("1234567"), "too short"));
  CHECK(contains(complaint_about(std::string(8, '\xff')), "length of a header"));
  CHECK(contains(complaint_about(framed(good, std::string(7, '\0'))), "8 bytes, and 7 are there"));
  CHECK(contains(complaint_about(framed(good, std::string(9, '\0'))), "8 bytes, and 9 are there"));
  CHECK(contains(complaint_about(framed("[]", "")), "not a JSON object"));
  CHECK(contains(complaint_about(framed("{\"a\"", "")), "not a JSON object"));
  CHECK(contains(complaint_about(framed(R"({"a":3})", "")), "malformed"));
  CHECK(contains(complaint_about(framed(R"({"__metadata__":{"a":3}})", "")), "more than texts"));
  CHECK(contains(complaint_about(framed(R"({"__metadata__":3})", "")), "not an object"));
  CHECK(contains(complaint_about(framed("{\"a\":" + std::string(100000, '['), "")), "malformed"));
  CHECK(contains(complaint_about(framed("{} {}", "")), "not a JSON object"));
  const std::string bytes(8, '\0');
  const std::string half = R"("a":{"dtype":"F32","shape":[1],"data_offsets":)";
  CHECK(contains(complaint_about(framed("{" + half + "[0,4]}," + half + "[4,8]}}", bytes)),
                 "tensor a twice"));
  for (const std::string shape :
       {"[-1]", "[1.5]", "2", "[9223372036854775807]", "[18446744073709551615]", "null"}) {
    INFO(shape);
    CHECK(contains(complaint_about(framed(entry("F32", shape, "[0,8]"), bytes)), "malformed"));
  }
  CHECK(contains(complaint_about(framed(entry("F32", "[3]", "[0,8]"), bytes)), "does not fit"));
  // 2^61 * 2^61 elements: the product must not wrap around.
  CHECK(contains(complaint_about(framed(
                     entry("F32", "[2305843009213693952,2305843009213693952,8]", "[0,8]"), bytes)),
                 "does not fit"));
  CHECK(contains(complaint_about(framed(entry("F32", "[2]", "[8,0]"), bytes)), "ends before"));
  CHECK(contains(complaint_about(framed(entry("F32", "[2]", "[4,12]"), bytes)), "gap at byte 0"));
  CHECK(contains(complaint_about(framed(entry("F32", "[2]", "[0]"), bytes)), "malformed"));
}
