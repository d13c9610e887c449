#pragma once
// What the tests of written files share.

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/net.h"
#include "data/checkpoint.h"

namespace towers::test {

// One-line message of the Error that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Names of what lies in `dir`, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline data::Tensor float_tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                                 std::span<const float> values) {
  return {name, data::DataType::float32, shape, std::as_bytes(values)};
}

// A net of a few hundred values, with layers of every kind that has variables.
inline Net small_net(int classes = 3) {
  return Net{.name = "small",
             .input = {4, 4, 2},
             .classes = classes,
             .layers = {{"conv1", Convolution{.kernel = 3, .outputs = 4}, {0.1, 0, 0}},
                        {"pool1", MaxPool{}},
                        {"norm1", LocalResponseNorm{}},
                        {"local3", Dense{.outputs = 5}, {0.1, 0.1, 0.004}},
                        {"softmax_linear", Dense{.outputs = classes, .relu = false}, {0.1, 0, 0}},
                        {"cross_entropy", SoftmaxLoss{}}}};
}

}  // namespace towers::test
