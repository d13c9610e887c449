#pragma once
// TensorFlow's element types as checkpoints name them, and their conversion to numbers.

#include <cstddef>
#include <span>

#include "data/checkpoint.h"

namespace towers::data {

// Bytes of one element of TensorFlow's type number `tf_type`; 0 for types without a fixed size
// (strings, resources) and unknown numbers.
std::size_t element_size(int tf_type);
const char* type_name(int tf_type);  // "float32"
DataType from_tensorflow(int tf_type);
int to_tensorflow(DataType type);  // not for `other`

// Little-endian elements of `type` (not `other`), rounded to out's type: bytes.size() =
// out.size() * element size.
void convert_values(DataType type, std::span<const std::byte> bytes, std::span<float> out);
void convert_values(DataType type, std::span<const std::byte> bytes, std::span<double> out);

}  // namespace towers::data
