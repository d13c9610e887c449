#include "app/rank_settings.h"

#include <map>
#include <set>
#include <sstream>

#include "app/thread_share.h"
#include "core/error.h"
#include "cpu/available_threads.h"
#include "cpu/backend.h"

namespace towers::app {
namespace {

// What each rank may have its own of. Folders: those of the data may lie elsewhere on each machine,
// and the others are rank 0's alone. Of the vector target, see require_equal_arithmetic.
const std::set<std::string> kOwn = {
    "compute_threads", "cpu_devices", "data_dir",      "input_threads", "log_device_placement",
    "log_level",       "progress",    "trace_file",    "trace_steps",   "metrics_log",
    "train_dir",       "quiet",       "stall_seconds", "pin_threads",   "simd"};

std::map<std::string, std::string> flags_of(const std::string& flagfile) {
  std::map<std::string, std::string> flags;
  std::istringstream lines(flagfile);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t equals = line.find('='); equals != std::string::npos && equals > 2)
      flags[line.substr(2, equals - 2)] = line.substr(equals + 1);
  return flags;
}

std::string unequal_line(const std::string& name, const std::string& here,
                         const std::string& there) {
  return "--" + name + " is " + here + " here and " + there +
         " on rank 0; give the same to all processes";
}

// The first flag that differs and that no rank may have its own of, as a line for the user.
std::string first_unequal(const std::string& flagfile, const std::string& leaders,
                          const std::set<std::string>& own) {
  const auto mine = flags_of(flagfile), theirs = flags_of(leaders);
  auto names = mine;
  names.insert(theirs.begin(), theirs.end());
  const auto value_in = [](const auto& flags, const std::string& name) {
    const auto flag = flags.find(name);
    return flag == flags.end() ? std::string("not given") : flag->second;
  };
  for (const auto& [name, ignored] : names) {
    const std::string here = value_in(mine, name), there = value_in(theirs, name);
    if (here != there && !own.contains(name)) return unequal_line(name, here, there);
  }
  return {};
}

// The processors that this process may run on, and of which machine.
std::string processors() {
  std::string text = host_name();
  for (const int processor : cpu::allowed_processors()) text += " " + std::to_string(processor);
  return text;
}

}  // namespace

std::string chosen_simd(const cli::CommonOptions& options) {
  if (options.simd != "auto") return options.simd;
  const std::string available = cpu::available_simd();
  return available.substr(0, available.find(','));
}

void require_equal_flags(Ranks& ranks, const cli::Parsed& parsed) {
  if (ranks.alone()) return;
  const std::string unequal = first_unequal(parsed.flagfile, ranks.leaders(parsed.flagfile), kOwn);
  if (!unequal.empty()) throw UsageError(unequal);
}

void require_equal_arithmetic(Ranks& ranks, const cli::CommonOptions& options) {
  std::string arithmetic = "--simd=" + chosen_simd(options) + "\n";
  if (options.precision == "bf16") arithmetic += "--precision=bf16 (" + cpu::bf16_support() + ")\n";
  const std::string unequal = first_unequal(arithmetic, ranks.leaders(arithmetic), {});
  if (!unequal.empty()) throw UsageError(unequal);
}

void share_threads(Ranks& ranks, cli::CommonOptions& options) {
  if (ranks.alone()) return;
  const std::vector<std::string> all = ranks.gather(processors());
  const std::vector<std::string> threads = ranks.gather(std::to_string(options.compute_threads));
  const std::vector<std::string> devices = ranks.gather(std::to_string(options.cpu_devices));
  const auto self = static_cast<std::size_t>(ranks.rank());
  std::vector<ThreadWish> wishes;  // of those that have the same processors
  std::size_t me = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] != all[self]) continue;
    if (r == self) me = wishes.size();
    wishes.push_back({std::stoi(threads[r]), std::stoi(devices[r])});
  }
  const ThreadShare share = share_of(wishes, me, cpu::available_threads());
  options.compute_threads = share.threads;
  options.first_processor = share.first;
  const std::size_t there = cpu::allowed_processors().size();
  if (options.pin_threads && there < static_cast<std::size_t>(share.total))
    throw UsageError("--pin_threads keeps each compute thread on a processor of its own, and the " +
                     std::to_string(wishes.size()) + " ranks on " + host_name() + " have " +
                     std::to_string(share.total) + " threads for " + std::to_string(there) +
                     " processors; start fewer, lower --compute_threads (or --cpu_devices where "
                     "that is more), or leave --pin_threads out");
}

}  // namespace towers::app
