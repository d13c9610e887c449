#include "cli/options.h"

namespace towers::cli {

BenchOptions::BenchOptions() = default;

}  // namespace towers::cli
