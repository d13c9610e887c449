#include "app/setup.h"

#include <cstdio>
#include <set>

#include "cli/console.h"
#include "cluster/mpi_loader.h"
#include "core/error.h"
#include "cpu/backend.h"
#include "cuda/loader.h"
#include "data/cifar10_archive.h"

namespace towers::app {
namespace {

void show_download(const data::Progress& p, cli::ProgressLine& line) {
  const double fraction =
      p.total == 0 ? 0 : static_cast<double>(p.done) / static_cast<double>(p.total);
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f%%", 100 * fraction);
  std::string text = std::string(">> ") + p.doing + " " + p.file + " " +
                     (p.total == 0 ? cli::human_bytes(p.done) : std::string(percent));
  if (p.bytes_per_second > 0)
    text += "  " + cli::human_bytes(static_cast<std::uint64_t>(p.bytes_per_second)) + "/s";
  if (p.total != 0 && p.bytes_per_second > 0)
    text += ", " + cli::human_duration(p.seconds_left) + " left";
  line.update(text, fraction);
}

}  // namespace

std::string version_text() {
  std::string text = "towers " TOWERS_VERSION "\n";
  text += "compiler: " TOWERS_COMPILER ", " TOWERS_BUILD_TYPE "\n";
  text += "CPU: " + cpu::available_simd() + "\n";
  text += "bf16 on the CPU: " + cpu::bf16_support() + "\n";
  text += "GPU module: " + cuda::module_build() + "\n";
  const auto reason = cuda::why_not_loadable(cuda::look_around());
  text += "GPU module loads: " + (reason ? "no, " + reason->text : std::string("yes"));
  text += "\nMPI module: " + cluster::mpi_build();
  return text;
}

Precision parse_precision(const std::string& name) {
  for (Precision p : {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64})
    if (to_string(p) == name) return p;
  throw UsageError("--precision=" + name + ": give fp32, bf16, fp16 or fp64");
}

void warn_if_slow(const Backend& backend, const CompileOptions& options) {
  static std::set<std::string> said;
  const std::string reason = backend.why_slow(options);
  if (reason.empty() || !said.insert(reason).second) return;
  cli::log_warning("--precision=" + to_string(options.precision) +
                   " is slower than fp32 here: " + reason);
}

data::Split parse_split(const std::string& eval_data) {
  return eval_data == "test" ? data::Split::test : data::Split::train;
}

void obtain_cifar10(const cli::CommonOptions& options) {
  cli::ProgressLine line;
  data::DownloadOptions download;
  download.url = options.data_url;
  download.sha256 = options.data_sha256;
  download.allow_network = options.download;
  if (!options.quiet)
    download.progress = [&line](const data::Progress& p) { show_download(p, line); };
  download.message = [&line](const std::string& text) {
    line.finish();
    cli::log_info(text);
  };
  download.warning = [&line](const std::string& text) {
    line.finish();
    cli::log_warning(text);
  };
  data::ensure_cifar10(options.data_dir, download);
}

data::Dataset load_dataset(const cli::CommonOptions& options, data::Split split) {
  if (options.dataset == "synthetic") return data::make_synthetic(split);
  obtain_cifar10(options);
  return data::load_cifar10(options.data_dir, split);
}

}  // namespace towers::app
