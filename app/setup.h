#pragma once
// What several commands need before they can start: a backend, data, a precision.

#include <memory>
#include <string>

#include "cli/options.h"
#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

// Picks the backend for --device. "auto" takes GPUs where they are usable, else the CPU; an NVIDIA
// device that cannot be used is an Error that names --device=cpu, never a silent run on the CPU.
std::unique_ptr<Backend> make_backend(const cli::CommonOptions& options);

// What --version prints: the version and what is compiled in.
std::string version_text();

Precision parse_precision(const std::string& name);

// The data set of --dataset; gets CIFAR-10 first where it is not there (see
// data/cifar10_archive.h).
data::Dataset load_dataset(const cli::CommonOptions& options, data::Split split);

// Downloads and extracts CIFAR-10 where it is not in --data_dir yet, with progress on stderr.
void obtain_cifar10(const cli::CommonOptions& options);

}  // namespace towers::app
