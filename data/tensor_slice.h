#pragma once
// Slices of partitioned variables: a checkpoint keeps each under a key that encodes name and box.

#include <cstdint>
#include <string>
#include <vector>

namespace towers::data {

struct SliceExtent {
  std::int64_t start = 0;
  std::int64_t length = -1;  // -1: the whole dimension
};

// One extent for each dimension.
using TensorSlice = std::vector<SliceExtent>;

// The key of a slice in the index: TensorFlow's "ordered code" of 0, the name, the number of
// dimensions, then start and length of each extent.
std::string slice_key(const std::string& name, const TensorSlice& slice);
// The name in such a key.
std::string slice_owner(const std::string& key);
// Names of tensors are not empty and don't start with the byte 0; keys of slices do.
inline bool is_slice_key(const std::string& key) {
  return !key.empty() && key.front() == '\0';
}

}  // namespace towers::data
