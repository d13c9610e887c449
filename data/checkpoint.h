#pragma once
// Checkpoints in TensorFlow's V2 format ("tensor bundle"): PREFIX.index, a LevelDB table of entries,
// and PREFIX.data-NNNNN-of-NNNNN, the tensors' bytes. Format notes: data/protos/tensor_bundle.proto.

#include <cstdint>
#include <filesystem>
#include <memory>
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

struct Tensor {
  std::string name;
  DataType type = DataType::float32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes; // little-endian; not owned
};

// Writes PREFIX.data-00000-of-00001 and PREFIX.index, each to a temporary name, synced and renamed,
// the index last. Throws Error with path and reason; a failed write leaves no file under a final name.
void write_checkpoint(const std::filesystem::path& prefix, std::vector<Tensor> tensors);

// Opens a checkpoint of any number of shards. Every byte read is checked against its checksum.
// Errors name the file and the tensor.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& prefix);
  ~CheckpointReader();

  const std::vector<TensorInfo>& tensors() const;  // sorted by name
  bool contains(const std::string& name) const;
  // float32, float64 (rounded) and integers come as float32 values. `size` is checked.
  void read(const std::string& name, std::span<float> out) const;
  // A scalar of type int32, int64 or float32: global_step.
  std::int64_t read_integer(const std::string& name) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The text file DIR/checkpoint: the latest checkpoint and all that are kept, oldest first.
struct CheckpointState {
  std::filesystem::path latest;           // prefixes, resolved against DIR
  std::vector<std::filesystem::path> all;
  std::string warning;                    // one line, when a dead absolute path was followed by name
};

// Empty `latest` when there is no state file. A malformed one is an Error.
CheckpointState read_checkpoint_state(const std::filesystem::path& dir);
// Atomic; paths inside DIR are written relative to it.
void write_checkpoint_state(const std::filesystem::path& dir, const CheckpointState& state);

}  // namespace towers::data
