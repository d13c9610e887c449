// The GPU's rows of the suite, by the real module. Without a GPU each case says what lacks.

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "cuda/loader.h"
#include "tests/backend/gpus.h"
#include "tests/backend/under_test.h"

namespace towers::test {
namespace {

cuda::Surroundings surroundings() {
  cuda::Surroundings s = cuda::look_around();
  // A program that was carried to another machine is told.
  if (std::getenv("TOWERS_CUDA_MODULE") == nullptr) s.modules = {TOWERS_CUDA_MODULE_FILE};
  return s;
}

std::vector<std::string> g_warnings;

std::unique_ptr<Backend> load() {
  cuda::Loaded loaded = cuda::load_backend(
      {.warning = [](const std::string& line) { g_warnings.push_back(line); }}, surroundings());
  if (!loaded.backend) throw std::runtime_error(loaded.reason->text);
  return std::move(loaded.backend);
}

// Empty where there is a GPU to test on. One that is there and cannot be used is no reason to skip:
// loading it fails in each case.
std::string why_skip() {
  if (cuda::nvidia_presence(surroundings()) == cuda::NvidiaPresence::present) return "";
  const cuda::Loaded loaded = cuda::load_backend({}, surroundings());
  return loaded.backend ? "" : "no CUDA device (" + loaded.reason->text + ")";
}

}  // namespace

BackendList backends_under_test() {
  static const std::string why = why_skip();
  BackendList list;
  list.why_none = why;
  if (!why.empty()) return list;
  BackendUnderTest row{.name = "cuda", .make = load};
  row.thorough = true;
  list.backends.push_back(row);
  row.thorough = false;
  row.name = "cuda, direct convolution";
  row.options.convolution = "direct";
  list.backends.push_back(row);
  row.name = "cuda, deterministic";
  row.options = {};
  row.options.deterministic = true;
  list.backends.push_back(row);
  return list;
}

GpusUnderTest gpus_under_test() {
  static const std::string why = why_skip();
  if (!why.empty()) return {{}, nullptr, nullptr, why};
  return {{static_cast<int>(load()->devices().size())},
          [](int, std::uint64_t) { return std::shared_ptr<Backend>(load()); },
          [] { return std::exchange(g_warnings, {}); },
          ""};
}

}  // namespace towers::test
