#include "cpu/simd.h"

#include "core/error.h"

namespace towers::cpu {

std::vector<SimdTarget> available_targets() {
  std::vector<SimdTarget> targets = hwy::SupportedAndGeneratedTargets();
  if (targets.empty()) targets.push_back(HWY_STATIC_TARGET);
  return targets;
}

SimdTarget find_target(const std::string& name) {
  const std::vector<SimdTarget> targets = available_targets();
  if (name == "auto") return targets.front();
  std::string names;
  for (SimdTarget target : targets) {
    if (name == hwy::TargetName(target)) return target;
    names += std::string(names.empty() ? "" : ", ") + hwy::TargetName(target);
  }
  throw UsageError("--simd=" + name +
                   " is not a vector target of this machine and build; there is " + names +
                   " (or auto)");
}

}  // namespace towers::cpu
