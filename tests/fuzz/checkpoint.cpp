// A checkpoint's index and data. An even first byte: the index as it is, a two-byte length in front
// of it, the data behind. An odd one: the entries of the index, each a key and a value with a
// length before it, up to an empty value; they get right checksums, which no fuzzer would guess.

#include "data/checkpoint.h"

#include <vector>

#include "data/table.h"
#include "tests/fuzz/target.h"

namespace {

using namespace towers;

std::string index_of(std::string_view& rest) {
  if (rest.empty()) return {};
  const bool raw = static_cast<unsigned char>(rest.front()) % 2 == 0;
  rest.remove_prefix(1);
  if (raw) return std::string(fuzz::take_piece(rest, 2));
  data::Table table;
  while (!rest.empty()) {
    const std::string key(fuzz::take_piece(rest));
    const std::string value(fuzz::take_piece(rest));
    if (value.empty() && !key.empty()) break;
    table[key] = value;
  }
  return data::encode_table(table);
}

// As `towers inspect` does.
void read_all(const std::filesystem::path& prefix) {
  const data::CheckpointReader reader(prefix);
  for (const data::TensorInfo& tensor : reader.tensors()) {
    fuzz::expect_errors_alone([&] { (void)reader.read_integer(tensor.name); });
    fuzz::expect_errors_alone([&] {
      std::size_t size = 1;
      for (const std::int64_t d : tensor.shape) size *= static_cast<std::size_t>(d);
      if (tensor.type == data::DataType::other) size = 0;
      std::vector<float> values(size);
      reader.read(tensor.name, values);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest = fuzz::view(bytes, size);
  const std::filesystem::path prefix = fuzz::folder() / "model.ckpt-1";
  fuzz::write_file(prefix.string() + ".index", index_of(rest));
  fuzz::write_file(prefix.string() + ".data-00000-of-00001", rest);
  fuzz::expect_errors_alone([&] { read_all(prefix); });
  return 0;
}
