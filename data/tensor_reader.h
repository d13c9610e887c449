#pragma once
// Named tensors, wherever they come from: a checkpoint, a safetensors file.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace towers::data {

enum class DataType { float32, float64, int32, int64, bfloat16, float16, other };

struct TensorInfo {
  std::string name;
  DataType type = DataType::float32;
  std::string type_name;  // "float32", for messages, also of types that are not read
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

class TensorReader {
 public:
  virtual ~TensorReader() = default;

  virtual std::string source() const = 0;  // "checkpoint run1/model.ckpt-99", for messages
  virtual const std::vector<TensorInfo>& tensors() const = 0;  // sorted by name
  // Whether read() checks what it reads against a checksum.
  virtual bool has_checksums() const = 0;
  // All of DataType but `other` come as values of out's type, rounded. The number of values is
  // checked.
  virtual void read(const std::string& name, std::span<float> out) const = 0;
  virtual void read(const std::string& name, std::span<double> out) const = 0;

  virtual const TensorInfo* find(const std::string& name) const = 0;  // null when it is not there
  bool contains(const std::string& name) const { return find(name) != nullptr; }
};

}  // namespace towers::data
