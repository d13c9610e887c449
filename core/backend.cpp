#include "core/backend.h"

namespace towers {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::fp64:
      return "fp64";
  }
  return "";
}

}  // namespace towers
