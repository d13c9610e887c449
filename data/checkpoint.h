#pragma once
// Checkpoints in TensorFlow's V2 format ("tensor bundle"): PREFIX.index, a LevelDB table of
// entries, and PREFIX.data-SSSSS-of-NNNNN, the tensors' bytes. Format notes:
// data/protos/tensor_bundle.proto.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tensor_reader.h"

namespace towers::data {

struct Tensor {
  std::string name;
  DataType type = DataType::float32;
  std::vector<std::int64_t> shape;   // empty: a scalar
  std::span<const std::byte> bytes;  // little-endian; not owned
};

// Writes PREFIX.data-00000-of-00001 and PREFIX.index, each to a temporary name, synced and renamed,
// the index last, so that whoever sees the index sees a whole checkpoint. Throws Error with path
// and reason, also for a name given twice, bytes that do not fit the shape, or a float32 value that
// is not finite (the tensor and its first such element are named): a checkpoint with NaN is worth
// nothing. A failed write leaves no file of its own, neither under the final names nor temporary
// ones.
void write_checkpoint(const std::filesystem::path& prefix, std::vector<Tensor> tensors);

// Opens a checkpoint of any number of shards, with whole or partitioned variables. Every byte read
// is checked against its checksum. Errors name the file and the tensor. The shards are opened on
// construction and stay so: a trainer that deletes the checkpoint meanwhile does no harm.
class CheckpointReader : public TensorReader {
 public:
  // Throws Error: a file that is missing, truncated, damaged or of a format that is not read.
  explicit CheckpointReader(const std::filesystem::path& prefix);
  ~CheckpointReader() override;
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  const std::filesystem::path& prefix() const;
  int shards() const;

  std::string source() const override;
  const std::vector<TensorInfo>& tensors() const override;
  const TensorInfo* find(const std::string& name) const override;
  bool has_checksums() const override { return true; }
  void read(const std::string& name, std::span<float> out) const override;
  void read(const std::string& name, std::span<double> out) const override;
  // A single integral value of type int32, int64, float32 or float64: global_step.
  std::int64_t read_integer(const std::string& name) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr std::string_view kStateFile = "checkpoint";

// The text file DIR/checkpoint: the latest checkpoint and all that are kept, oldest first.
struct CheckpointState {
  std::filesystem::path latest;  // prefixes, resolved against DIR
  std::vector<std::filesystem::path> all;
  std::string warning;  // one line, when a dead absolute path was followed by name
};

// Empty `latest` when there is no state file. A malformed one is an Error. A path that leads
// nowhere is followed by its file name in `dir`, for folders that were moved. Checkpoints listed in
// `all` that are not there any more are left out; `latest` stays, so that opening it says what
// lacks.
CheckpointState read_checkpoint_state(const std::filesystem::path& dir);
// Atomic; paths inside DIR are written relative to it.
void write_checkpoint_state(const std::filesystem::path& dir, const CheckpointState& state);

}  // namespace towers::data
