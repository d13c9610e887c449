#pragma once
// The commands of the one binary. Each returns its exit code; errors are thrown and end in main.

#include "cli/options.h"
#include "cli/parse.h"

namespace towers::app {

int run_train(const cli::TrainOptions& options, const cli::Parsed& parsed);
int run_eval(const cli::EvalOptions& options);
int run_devices(const cli::DevicesOptions& options);
int run_download(const cli::DownloadOptions& options);
int run_inspect(const cli::InspectOptions& options);
int run_linear(const cli::LinearOptions& options);
int run_bench(const cli::BenchOptions& options);
int run_export(const cli::ExportOptions& options);
int run_import(const cli::ImportOptions& options);
int run_predict(const cli::PredictOptions& options);

}  // namespace towers::app
