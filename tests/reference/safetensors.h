#pragma once
// Reads safetensors files (https://github.com/huggingface/safetensors, "Format"): 8 bytes with the
// length of a JSON header, the header, the tensors' bytes, all little-endian.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace towers::reference {

class Safetensors {
 public:
  // Throws std::runtime_error naming the file when it cannot be read or its header does not fit it.
  explicit Safetensors(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.count(name) != 0; }
  const std::vector<std::size_t>& shape(const std::string& name) const;
  // Values in row-major order. Throw std::runtime_error naming the tensor when it is absent or of
  // another type.
  std::vector<float> floats(const std::string& name) const;           // F32
  std::vector<std::int32_t> integers(const std::string& name) const;  // I32
  std::vector<std::uint8_t> bytes(const std::string& name) const;     // U8

 private:
  struct Entry {
    std::string type;
    std::vector<std::size_t> shape;
    std::size_t begin = 0, end = 0;  // within data_
  };
  const Entry& entry(const std::string& name) const;
  template <class T>
  std::vector<T> values(const std::string& name, const std::string& type) const;

  std::filesystem::path path_;
  std::map<std::string, Entry> entries_;
  std::vector<char> data_;
};

}  // namespace towers::reference
