#pragma once
// In place of the made one.

namespace towers::cuda {

inline constexpr const char* kModuleStamp = "another build";

}  // namespace towers::cuda
