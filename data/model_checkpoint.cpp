#include "data/model_checkpoint.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "data/checkpoint_saver.h"

namespace towers::data {
namespace {

constexpr const char* kAverageSuffix = "/ExponentialMovingAverage";
constexpr const char* kGlobalStep = "global_step";
constexpr std::size_t kFaultsNamed = 4;

std::string to_string(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

Tensor tensor(std::string name, const std::vector<std::int64_t>& shape,
              std::span<const float> values) {
  return {std::move(name), DataType::float32, shape, std::as_bytes(values)};
}

// Of numbers with a fraction: a variable of whole ones has been quantized, or is another's.
bool is_real(DataType type) {
  return type != DataType::other && type != DataType::int32 && type != DataType::int64;
}

// Collects what is wrong with the tensors, so that one error tells all of it.
class Faults {
 public:
  // Whether the tensor is there in the right shape.
  bool check(const TensorReader& reader, const std::string& name, const Variable& variable) {
    const TensorInfo* info = reader.find(name);
    if (info != nullptr && info->shape == variable.shape && is_real(info->type)) return true;
    if (count_++ < kFaultsNamed) {
      text_ += (text_.empty() ? "" : ", ") + name;
      if (info == nullptr)
        text_ += " is missing";
      else if (info->shape != variable.shape)
        text_ += " is " + to_string(info->shape) + " where " + to_string(variable.shape) +
                 " is expected";
      else
        text_ += " is of type " + info->type_name + " where floating-point numbers are expected";
    }
    return false;
  }

  void throw_any(const TensorReader& reader) const {
    if (count_ == 0) return;
    std::string text = reader.source() + " does not fit this model: " + text_;
    if (count_ > kFaultsNamed) text += " and " + std::to_string(count_ - kFaultsNamed) + " more";
    throw Error(text + "; use one of the same model");
  }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

// Restores each variable from the tensor that `name_of` gives for it.
template <typename NameOf>
void restore(const TensorReader& reader, const VariableLayout& layout, std::span<float> flat,
             const NameOf& name_of) {
  Faults faults;
  for (const Variable& variable : layout.variables())
    faults.check(reader, name_of(variable), variable);
  faults.throw_any(reader);
  std::fill(flat.begin(), flat.end(), 0.0f);
  for (const Variable& variable : layout.variables())
    reader.read(name_of(variable), view(flat, variable));
}

}  // namespace

std::vector<Tensor> model_tensors(const VariableLayout& layout, std::span<const float> variables,
                                  std::span<const float> averages, const float& global_step) {
  std::vector<Tensor> tensors;
  tensors.reserve(2 * layout.variables().size() + 1);
  for (const Variable& v : layout.variables()) {
    tensors.push_back(tensor(v.name, v.shape, view(variables, v)));
    tensors.push_back(tensor(v.name + kAverageSuffix, v.shape, view(averages, v)));
  }
  tensors.push_back(tensor(kGlobalStep, {}, {&global_step, 1}));
  return tensors;
}

void restore_variables(const TensorReader& reader, const VariableLayout& layout,
                       std::span<float> variables) {
  restore(reader, layout, variables, [](const Variable& v) { return v.name; });
}

void restore_averages(const TensorReader& reader, const VariableLayout& layout,
                      std::span<float> averages, MissingAverages missing) {
  restore(reader, layout, averages, [&](const Variable& v) {
    const std::string average = v.name + kAverageSuffix;
    const bool fall_back = missing == MissingAverages::use_variables && !reader.contains(average);
    return fall_back ? v.name : average;
  });
}

bool has_averages(const TensorReader& reader, const VariableLayout& layout) {
  return std::any_of(layout.variables().begin(), layout.variables().end(),
                     [&](const Variable& v) { return reader.contains(v.name + kAverageSuffix); });
}

std::int64_t restore_global_step(const CheckpointReader& reader) {
  const std::int64_t step = reader.read_integer(kGlobalStep);
  if (step < 0)
    throw Error("global_step in checkpoint " + reader.prefix().string() +
                " is negative: " + std::to_string(step));
  const std::optional<std::int64_t> last = step_in_name(reader.prefix());
  const bool named = last && static_cast<float>(*last + 1) == static_cast<float>(step);
  return named ? *last + 1 : step;
}

}  // namespace towers::data
