#pragma once
// The texts that travel with exported tensors, by name. `towers import` reads what `towers export`
// wrote; files of others need have none of them.

#include <string>

namespace towers::app {

inline constexpr const char* kMetadataStep = "global_step";         // updates made
inline constexpr const char* kMetadataFlags = "flags";              // the run's, as a flagfile
inline constexpr const char* kMetadataPosition = "examples_drawn";  // in the stream of examples
inline constexpr const char* kMetadataCheckpoint = "checkpoint";    // name of the one exported
inline constexpr const char* kMetadataClasses = "classes";          // names, separated by commas
inline constexpr const char* kMetadataWeights = "weights";  // moving_averages or variables (ONNX)

// The lines of a flagfile that mean the same on another machine: no paths, no addresses, nothing
// but flags. So no path travels with a model, and none comes with one.
std::string portable_flags(const std::string& flagfile);

}  // namespace towers::app
