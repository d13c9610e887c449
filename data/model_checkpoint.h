#pragma once
// A model's variables, their moving averages and the global step, as tensors of a checkpoint under
// TensorFlow's names: "conv1/weights", "conv1/weights/ExponentialMovingAverage", "global_step".

#include <cstdint>
#include <span>
#include <vector>

#include "core/variables.h"
#include "data/checkpoint.h"

namespace towers::data {

// The tensors to write. They are views: the flat buffers (layout.size() values) and `global_step`
// (the number of updates made, float32 as the multi-GPU trainer's) must outlive them.
std::vector<Tensor> model_tensors(const VariableLayout& layout, std::span<const float> variables,
                                  std::span<const float> averages, const float& global_step);

// Where the averages of a variable are not in the checkpoint: an Error, or its value in their
// place.
enum class MissingAverages { error, use_variables };

// Fill flat buffers (layout.size() values; padding becomes 0) from a checkpoint or another such
// source. When tensors lack or have another shape, Error lists the first few, with both shapes.
// What else the source holds is ignored.
void restore_variables(const TensorReader& reader, const VariableLayout& layout,
                       std::span<float> variables);
// For evaluation: the averages in place of the variables.
void restore_averages(const TensorReader& reader, const VariableLayout& layout,
                      std::span<float> averages, MissingAverages missing = MissingAverages::error);
// Whether it holds the average of any variable.
bool has_averages(const TensorReader& reader, const VariableLayout& layout);
// Number of updates made: int32, int64, float32 or float64. Beyond 2^24, where a float32 skips
// numbers, the checkpoint's name says which of those that round to it. Error when it is missing or
// negative.
std::int64_t restore_global_step(const CheckpointReader& reader);

}  // namespace towers::data
