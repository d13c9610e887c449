#pragma once
// The parts of `towers inspect`.

#include <filesystem>
#include <memory>
#include <string>

#include "data/tensor_reader.h"

namespace towers::app {

// A checkpoint (see find_checkpoint), or a safetensors file.
struct TensorFile {
  std::string name;  // of the file, or the checkpoint's prefix
  std::unique_ptr<data::TensorReader> reader;
};
TensorFile open_tensors(const std::filesystem::path& path);

// Each prints a listing, or JSON. What is damaged shows there, and ends in an Error.
void inspect_tensors(const TensorFile& file, bool json);
void inspect_difference(const TensorFile& a, const TensorFile& b, bool json);
void inspect_events(const std::filesystem::path& path, bool json);

// All values, those of integers beyond 2^53 rounded. The type must not be `other`.
std::vector<double> read_values(const data::TensorReader& reader, const data::TensorInfo& info);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[5, 5, 3, 64]"
std::string short_number(double value);                          // six digits

}  // namespace towers::app
