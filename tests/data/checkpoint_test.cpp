// Checkpoints: TensorFlow's own bytes and round trips.

#include "data/checkpoint.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/models/cifar10.h"
#include "data/model_checkpoint.h"
#include "data/table.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::data {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(TOWERS_SOURCE_DIR) / "tests" / "golden" / "checkpoints";

void check_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const std::string suffix : {".index", ".data-00000-of-00001"}) {
    INFO(suffix);
    const bool same = test::read_file(a.string() + suffix) == test::read_file(b.string() + suffix);
    CHECK(same);
  }
}

template <typename T>
std::int64_t read_back_integer(T value, DataType type) {
  const test::TemporaryFolder folder;
  write_checkpoint(folder.path() / "c",
                   {{"global_step", type, {}, std::as_bytes(std::span(&value, 1))}});
  return CheckpointReader(folder.path() / "c").read_integer("global_step");
}

TEST_CASE("The original trainer's checkpoint is read, and written again byte for byte") {
  const auto shared = test::shared_dir();
  if (shared.empty()) return test::skip("needs TensorFlow's values in ../shared");
  const auto golden = shared / "golden" / "model.ckpt-1500";
  const CheckpointReader reader(golden);
  const VariableLayout layout(cifar10_net(0.004));
  std::vector<float> variables(layout.size()), averages(layout.size());
  restore_variables(reader, layout, variables);
  restore_averages(reader, layout, averages);
  const float global_step = static_cast<float>(restore_global_step(reader));
  CHECK(global_step == 1501.0f);

  const test::TemporaryFolder folder;
  write_checkpoint(folder.path() / "c", model_tensors(layout, variables, averages, global_step));
  check_same_files(folder.path() / "c", golden);
}

TEST_CASE("TensorFlow's checkpoints of every kind are read to the value") {
  const auto expected = nlohmann::json::parse(test::read_file(kGolden / "expected.json"));
  for (const auto& [name, checkpoint] : expected.items()) {
    if (name == "about") continue;
    INFO(name);
    const CheckpointReader reader(kGolden / name / checkpoint["prefix"].get<std::string>());
    CHECK(reader.shards() == checkpoint["shards"].get<int>());
    CHECK(reader.tensors().size() == checkpoint["tensors"].size());
    for (const auto& [tensor, want] : checkpoint["tensors"].items()) {
      INFO(tensor);
      const TensorInfo* info = reader.find(tensor);
      REQUIRE(info != nullptr);
      CHECK(info->type_name == want["type"].get<std::string>());
      CHECK(info->shape == want["shape"].get<std::vector<std::int64_t>>());
      std::vector<float> values(want["values"].size());
      if (info->type == DataType::other) {
        const std::string message =
            test::error_of([&, &name = tensor] { reader.read(name, values); });
        CHECK(test::contains(message, tensor + " in checkpoint"));
        continue;
      }
      reader.read(tensor, values);
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(values[i] == static_cast<float>(want["values"][i].get<double>()));
    }
    if (reader.contains("global_step")) CHECK(reader.read_integer("global_step") == 100);
  }
}

TEST_CASE("One shard of TensorFlow's is written again byte for byte") {
  const CheckpointReader reader(kGolden / "float32_step" / "model.ckpt-99");
  std::vector<std::vector<float>> values;
  std::vector<Tensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    reader.read(info.name, values.emplace_back(info.bytes / sizeof(float)));
    tensors.push_back(test::float_tensor(info.name, info.shape, values.back()));
  }
  std::reverse(tensors.begin(), tensors.end());  // any order in, sorted out
  const test::TemporaryFolder folder;
  write_checkpoint(folder.path() / "c", tensors);
  check_same_files(folder.path() / "c", kGolden / "float32_step" / "model.ckpt-99");
}

TEST_CASE("A partitioned variable is put together") {
  const CheckpointReader reader(kGolden / "partitioned" / "model.ckpt-1");
  REQUIRE(reader.tensors().size() == 1);
  const TensorInfo& info = reader.tensors().front();
  CHECK(info.shape == std::vector<std::int64_t>{4, 3});
  CHECK(info.bytes == 48);
  std::vector<float> values(12);
  reader.read(info.name, values);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<float>(i));
}

TEST_CASE("Tables of many blocks survive a round trip") {
  Table table{{"", "header"}};
  for (int i = 0; i < 3000; ++i)
    table["layer" + std::to_string(i)] = std::string(300, static_cast<char>('a' + i % 26));
  const std::string bytes = encode_table(table);
  CHECK(bytes.size() > 3 * 262144);
  const bool same = decode_table(bytes, "t") == table;
  CHECK(same);
}

TEST_CASE("global_step comes as any integral number") {
  CHECK(read_back_integer(std::int32_t{-5}, DataType::int32) == -5);
  CHECK(read_back_integer(std::numeric_limits<std::int64_t>::max(), DataType::int64) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(read_back_integer(16777216.0f, DataType::float32) == 16777216);
  CHECK(read_back_integer(1e15, DataType::float64) == 1000000000000000);
  const auto message = [](double value) {
    return test::error_of([&] { read_back_integer(value, DataType::float64); });
  };
  CHECK(test::contains(message(1.5), "global_step"));
  CHECK(test::contains(message(1e300), "whole number"));
  CHECK(test::contains(message(std::numeric_limits<double>::quiet_NaN()), "whole number"));
}

TEST_CASE("A tensor that is no single number is no global_step") {
  const test::TemporaryFolder folder;
  const std::vector<float> two{1, 2};
  write_checkpoint(folder.path() / "c", {test::float_tensor("v", {2}, two)});
  const CheckpointReader reader(folder.path() / "c");
  CHECK(test::contains(test::error_of([&] { reader.read_integer("v"); }), "tensor v"));
  CHECK(test::contains(test::error_of([&] { reader.read_integer("w"); }), "no tensor w"));
  std::vector<float> three(3);
  CHECK(test::contains(test::error_of([&] { reader.read("v", three); }), "2 values where 3"));
}

TEST_CASE("Nothing that is not finite is written") {
  const float bad =
      GENERATE(std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
               std::numeric_limits<float>::quiet_NaN());
  const test::TemporaryFolder folder;
  std::vector<float> values(40000, std::numeric_limits<float>::max());
  values[30001] = bad;
  const std::string message = test::error_of([&] {
    write_checkpoint(folder.path() / "c", {test::float_tensor("conv1/weights", {40000}, values)});
  });
  CHECK(test::contains(message, "element 30001 of conv1/weights is not finite"));
  CHECK(test::names_in(folder.path()).empty());
}

TEST_CASE("Tensors that are named twice or do not fit their shape are refused") {
  const test::TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  const auto message = [&](std::vector<Tensor> tensors) {
    return test::error_of([&] { write_checkpoint(folder.path() / "c", std::move(tensors)); });
  };
  const Tensor good = test::float_tensor("v", {2}, values);
  CHECK(test::contains(message({good, good}), "two tensors are named v"));
  CHECK(test::contains(message({test::float_tensor("v", {3}, values)}), "fit its shape"));
  CHECK(test::contains(message({test::float_tensor("", {2}, values)}), "fit its shape"));
  CHECK(test::names_in(folder.path()).empty());
}

TEST_CASE("A checkpoint deleted while it is open is still read") {
  const test::TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  write_checkpoint(folder.path() / "c", {test::float_tensor("v", {2}, values)});
  const CheckpointReader reader(folder.path() / "c");
  std::filesystem::remove(folder.path() / "c.data-00000-of-00001");
  std::vector<float> read(2);
  reader.read("v", read);
  CHECK(read == values);
}

}  // namespace
}  // namespace towers::data
