#include "cpu/simd.h"

#include "core/error.h"
#include "cpu/backend.h"

namespace towers::cpu {

std::vector<SimdTarget> available_targets() {
  std::vector<SimdTarget> targets = hwy::SupportedAndGeneratedTargets();
  if (targets.empty()) targets.push_back(HWY_STATIC_TARGET);
  return targets;
}

std::string available_simd() {
  std::string names;
  for (SimdTarget target : available_targets())
    names += std::string(names.empty() ? "" : ", ") + hwy::TargetName(target);
  return names;
}

SimdTarget find_target(const std::string& name) {
  const std::vector<SimdTarget> targets = available_targets();
  if (name == "auto") return targets.front();
  for (SimdTarget target : targets)
    if (name == hwy::TargetName(target)) return target;
  throw UsageError("--simd=" + name +
                   " is not a vector target of this machine and build; there is " +
                   available_simd() + " (or auto)");
}

}  // namespace towers::cpu
