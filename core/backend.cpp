#include "core/backend.h"

#include <stdexcept>

#include "core/error.h"

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

void check_labels(const Batch& batch, int classes) {
  if (batch.labels == nullptr) return;
  for (int i = 0; i < batch.size; ++i)
    if (batch.labels[i] < 0 || batch.labels[i] >= classes)
      throw Error("label " + std::to_string(batch.labels[i]) + " of image " + std::to_string(i) +
                  " of a batch is not in 0.." + std::to_string(classes - 1) +
                  "; check the data set");
}

bool Towers::make_input(InputForm, const TrainingRecords&) {
  throw std::logic_error("these towers take images: Backend::makes_input() says so");
}

}  // namespace towers
