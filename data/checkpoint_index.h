#pragma once
// The index of a checkpoint, checked: what CheckpointReader reads by.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/checkpoint.h"
#include "data/tensor_slice.h"

namespace towers::data {

struct CheckpointEntry {
  TensorInfo info;
  std::uint64_t elements = 0;
  int shard = 0;
  std::uint64_t offset = 0;  // in the shard, bytes
  std::uint32_t masked_crc = 0;
  std::vector<TensorSlice> slices;  // of a partitioned variable: it has no bytes of its own
};

struct CheckpointIndex {
  int shards = 0;
  // Tensors by name, slices by key (data/tensor_slice.h) with their variable's name in `info`.
  std::map<std::string, CheckpointEntry> entries;
};

// Reads PREFIX.index. Every number of an entry is checked against the others, so that shapes, sizes
// and slices fit together and nothing overflows; whether the shards are that large is not. Throws
// Error naming the file and the tensor.
CheckpointIndex read_checkpoint_index(const std::filesystem::path& prefix);

}  // namespace towers::data
