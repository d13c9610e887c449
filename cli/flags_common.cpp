// What several commands share: data, devices, and what all of them know.

#include <algorithm>
#include <cctype>

#include "cli/commands.h"
#include "cli/flag_rows.h"

namespace towers::cli {
namespace {

bool is_address(std::string_view text) {
  return text.starts_with("https://") || text.starts_with("http://") || text.starts_with("file://");
}

bool is_sha256_or_empty(std::string_view text) {
  return text.empty() || (text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
                            return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                          }));
}

// A flag that is written as another one: it has no line in a flagfile.
Value without_line(Value value) {
  value.get = [](const CommonOptions&) { return std::nullopt; };
  return value;
}

// Handled by the parser itself, before any options.
Value parser_switch() {
  Value value;
  value.boolean = true;
  value.expected = "true or false";
  value.set = [](CommonOptions&, std::string_view text) { return read_boolean(text).has_value(); };
  return without_line(value);
}

Value parser_file() {
  Value value;
  value.placeholder = "FILE";
  value.expected = "the name of a file";
  return without_line(value);
}

// bench has a row of its own for it.
Flag but_for_bench(Flag flag) {
  flag.accepted &= ~unsigned{bench_bit};
  return flag;
}

}  // namespace

std::vector<Flag> data_flags() {
  using O = CommonOptions;
  const auto group = Group::data;
  const unsigned all = train_bit | eval_bit | download_bit | bench_bit | predict_bit;
  return {
      common("data_dir", group, all, folder(&O::data_dir),
             "holds cifar-10-batches-bin, or is that folder"),
      common("dataset", group, train_bit | eval_bit | bench_bit | predict_bit,
             choice(&O::dataset, {"cifar10", "synthetic"}),
             "real images, or computed ones that need no files"),
      common("download", group, all, boolean(&O::download),
             "fetch what is missing; off: no network, print the address and the path instead"),
      common("data_url", group, all,
             with_default_text(text(&O::data_url, "URL",
                                    "an address that begins with https://, http:// or "
                                    "file://",
                                    is_address),
                               "the official one"),
             "where the archive comes from"),
      common("data_sha256", group, all,
             text(&O::data_sha256, "HEX", "64 hexadecimal digits", is_sha256_or_empty),
             "digest of the archive at another address"),
      but_for_bench(common("batch_size", group, train_bit | eval_bit | predict_bit,
                           whole(&O::batch_size, 1, 65536), "examples per step in each tower")),
      but_for_bench(
          common("input_threads", group, train_bit,
                 with_default_text(whole(&O::input_threads, 0, 1024), "1"),
                 "threads that prepare batches; 0: none, a batch is made when it is needed")),
      only("input", group, train_bit | bench_bit,
           choice(&SharedOptions::input, {"auto", "host", "device"}),
           "where the training set is, in the GPUs' memory or the host's; auto takes the GPUs' "
           "where there is room"),
  };
}

std::vector<Flag> device_flags() {
  using O = CommonOptions;
  const auto group = Group::devices;
  const unsigned both = train_bit | eval_bit | predict_bit;
  const unsigned running = both | bench_bit;
  return {
      only("num_gpus", group, train_bit, whole(&TrainOptions::num_gpus, 1, 1024),
           "number of towers, of each process under mpirun or srun"),
      common("device", group, running | devices_bit, choice(&O::device, {"auto", "cpu", "gpu"}),
             "auto takes the GPUs, or the CPU where there are none"),
      common("allow_soft_placement", group, train_bit | bench_bit,
             boolean(&O::allow_soft_placement),
             "let towers share a device where there are too few; off: an error"),
      common("log_device_placement", group, both, boolean(&O::log_device_placement),
             "print each layer and its device once"),
      but_for_bench(common("precision", group, both, choice(&O::precision, kPrecisions),
                           "of products; sums and variables stay fp32, but for fp64, which is for "
                           "checking; fp16 is for GPUs")),
      but_for_bench(common("use_fp16", group, both, without_line(boolean(&O::use_fp16)),
                           "the same as --precision=fp16, so for GPUs")),
      common("allow_tf32", group, running, boolean(&O::allow_tf32),
             "let GPUs round the inputs of fp32 products to TF32: faster, about three digits"),
      but_for_bench(common("compute_threads", group, both | devices_bit,
                           with_default_text(whole(&O::compute_threads, 0, 4096), "0"),
                           "threads of all CPU devices; 0: as many as allowed")),
      common("cpu_devices", group, running | devices_bit, whole(&O::cpu_devices, 1, 1024),
             "number of devices to split the CPU into"),
      common("pin_threads", group, running, boolean(&O::pin_threads),
             "keep each compute thread on a processor of its own"),
      common("simd", group, running | devices_bit,
             text(&O::simd, "TARGET", "auto or the name of a vector target", not_empty),
             "vector instructions of the CPU, by name"),
      only("convolution", group, train_bit, choice(&TrainOptions::convolution, kConvolutions),
           "of 5 x 5 kernels on the CPU, auto takes the fastest; GPUs take auto or direct"),
      only("deterministic", group, train_bit, boolean(&TrainOptions::deterministic),
           "the same bytes from every run on GPUs too, as always on the CPU"),
  };
}

std::vector<Flag> general_flags() {
  using O = CommonOptions;
  const auto group = Group::general;
  return {
      common("log_level", group, every_bit,
             choice(&O::log_level, {"debug", "info", "warning", "error", "off"}),
             "least severe of the lines on stderr"),
      common("quiet", group, every_bit, boolean(&O::quiet),
             "no tables; warnings and errors alone on stderr"),
      common("flagfile", group, every_bit, parser_file(),
             "more flags, one a line; # begins a comment"),
      common("help", group, every_bit, parser_switch(), "print this"),
      common("version", group, every_bit, parser_switch(), "print what is compiled in"),
  };
}

}  // namespace towers::cli
