#pragma once
// Files in the safetensors format: 8 bytes little-endian length, a JSON header of that length that
// gives each tensor's type, shape and place, and optional text; then the tensors' bytes, without
// gaps. https://github.com/huggingface/safetensors describes it.

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/checkpoint.h"

namespace towers::data {

// Texts that travel with the tensors, by name ("__metadata__" of the header).
using Metadata = std::map<std::string, std::string>;

// The file appears whole or not at all. Throws Error with path and reason.
void write_safetensors(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                       const Metadata& metadata);

class SafetensorsReader : public TensorReader {
 public:
  // Reads and checks the whole header: types, sizes and places fit each other and the file. Throws
  // Error naming the file and, where it is one's fault, the tensor.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader() override;

  std::string source() const override;
  const std::vector<TensorInfo>& tensors() const override;
  const TensorInfo* find(const std::string& name) const override;
  bool has_checksums() const override { return false; }  // the format has none
  void read(const std::string& name, std::span<float> out) const override;
  void read(const std::string& name, std::span<double> out) const override;
  const Metadata& metadata() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace towers::data
