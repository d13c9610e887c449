// Stands in for onednn*.cpp where the build has no oneDNN.

#include "core/error.h"
#include "cpu/onednn.h"

namespace towers::cpu {

std::string why_no_onednn() {
  return "this build has no oneDNN";
}

std::string onednn_version() {
  return "";
}

bool onednn_has_amx() {
  return false;
}

std::unique_ptr<SpatialLayer> make_onednn_conv2d(const Convolution&, const Extent&, const Extent&,
                                                 const Variable&, const Variable&,
                                                 const LayerSetting&) {
  throw Error(why_no_onednn());
}

std::unique_ptr<Stage> make_onednn_dense(const Layer&, std::size_t, const Variable&,
                                         const Variable&, const LayerSetting&) {
  throw Error(why_no_onednn());
}

}  // namespace towers::cpu
