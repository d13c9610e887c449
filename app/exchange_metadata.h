#pragma once
// The texts that travel with exported tensors, by name. `towers import` reads what `towers export`
// wrote; files of others need have none of them.

namespace towers::app {

inline constexpr const char* kMetadataStep = "global_step";         // updates made
inline constexpr const char* kMetadataFlags = "flags";              // the run's, as a flagfile
inline constexpr const char* kMetadataPosition = "examples_drawn";  // in the stream of examples
inline constexpr const char* kMetadataCheckpoint = "checkpoint";    // name of the one exported
inline constexpr const char* kMetadataClasses = "classes";          // names, separated by commas
inline constexpr const char* kMetadataWeights = "weights";  // moving_averages or variables (ONNX)

}  // namespace towers::app
