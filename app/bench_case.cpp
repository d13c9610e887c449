#include "app/bench_case.h"

#include "core/error.h"

namespace towers::app {
namespace {

template <class Value>
void require_one(const std::vector<Value>& list, const std::string& flag, const std::string& what) {
  if (list.size() > 1)
    throw UsageError("--" + flag + " has several values, and --what=" + what +
                     " does not depend on it: give one");
}

void check(const cli::BenchOptions& o) {
  if (o.what == "input") {
    require_one(o.precisions, "precision", o.what);
    require_one(o.convolutions, "convolution", o.what);
    require_one(o.thread_counts, "compute_threads", o.what);
  } else if (o.what != "train") {
    require_one(o.input_thread_counts, "input_threads", o.what);
  }
  if (o.what != "train" && o.input == "device")
    throw UsageError("--input=device is measured with --what=train, beside --what=step");
  if (o.what == "layers" && o.tower_counts != std::vector{1})
    throw UsageError("--what=layers measures one tower: leave --num_gpus out");
  if (o.what == "layers" && o.cpu_devices != 1)
    throw UsageError("--what=layers measures one device: leave --cpu_devices out");
}

// `cases`, each once for every element of `list`.
template <class Element, class Set>
std::vector<BenchCase> times(const std::vector<BenchCase>& cases, const std::vector<Element>& list,
                             Set set) {
  std::vector<BenchCase> product;
  for (const BenchCase& c : cases) {
    for (const Element& element : list) {
      product.push_back(c);
      set(product.back(), element);
    }
  }
  return product;
}

}  // namespace

std::vector<BenchCase> bench_cases(const cli::BenchOptions& options) {
  check(options);
  std::vector<BenchCase> cases{{options, 1, ""}};
  cases = times(cases, options.batch_sizes,
                [](BenchCase& c, int batch) { c.options.batch_size = batch; });
  cases = times(cases, options.tower_counts, [](BenchCase& c, int towers) { c.towers = towers; });
  cases = times(cases, options.precisions, [](BenchCase& c, const std::string& precision) {
    c.options.precision = precision;
  });
  cases = times(cases, options.convolutions,
                [](BenchCase& c, const std::string& convolution) { c.convolution = convolution; });
  cases = times(cases, options.thread_counts,
                [](BenchCase& c, int threads) { c.options.compute_threads = threads; });
  return times(cases, options.input_thread_counts,
               [](BenchCase& c, int threads) { c.options.input_threads = threads; });
}

}  // namespace towers::app
