// A safetensors file. An even first byte: the file as it is. An odd one: the header with its
// two-byte length before it, which becomes the format's, and the tensors' bytes.

#include "data/safetensors.h"

#include <cstring>
#include <vector>

#include "tests/fuzz/target.h"

using namespace towers;

namespace {

std::string file_of(std::string_view rest) {
  if (rest.empty()) return {};
  const bool raw = static_cast<unsigned char>(rest.front()) % 2 == 0;
  rest.remove_prefix(1);
  if (raw) return std::string(rest);
  const std::string_view header = fuzz::take_piece(rest, 2);
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + std::string(header) + std::string(rest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "a.safetensors";
  const std::string file = file_of(fuzz::view(bytes, size));
  fuzz::write_file(path, file);
  fuzz::expect_errors_alone([&] {
    const data::SafetensorsReader reader(path);
    for (const data::TensorInfo& tensor : reader.tensors()) {
      if (reader.find(tensor.name) == nullptr) fuzz::fail("a tensor that is not found");
      if (tensor.bytes > file.size()) fuzz::fail("a tensor that is larger than its file");
      if (tensor.type == data::DataType::other) continue;
      fuzz::expect_errors_alone([&] {
        std::size_t elements = 1;
        for (const std::int64_t d : tensor.shape) elements *= static_cast<std::size_t>(d);
        std::vector<float> values(elements);
        reader.read(tensor.name, values);
      });
    }
  });
  return 0;
}
