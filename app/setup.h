#pragma once
// What several commands need before they can start: data, a precision.

#include <string>

#include "cli/options.h"
#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

// What --version prints: the version, what is compiled in, and whether the GPU module loads.
std::string version_text();

Precision parse_precision(const std::string& name);

// Says once, in one line, where a precision takes longer here than fp32 would, and why.
void warn_if_slow(const Backend& backend, const CompileOptions& options);

// "test", or "train_eval": the training set, seen as the evaluator sees it.
data::Split parse_split(const std::string& eval_data);

// One feeds hundreds of cores, where --input_threads does not say otherwise.
inline int input_threads(const cli::CommonOptions& options) {
  return options.input_threads.value_or(1);
}

// The data set of --dataset; gets CIFAR-10 first where it is not there (see
// data/cifar10_archive.h).
data::Dataset load_dataset(const cli::CommonOptions& options, data::Split split);

// Downloads and extracts CIFAR-10 where it is not in --data_dir yet, with progress on stderr.
void obtain_cifar10(const cli::CommonOptions& options);

}  // namespace towers::app
