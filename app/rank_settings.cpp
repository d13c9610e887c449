#include "app/rank_settings.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"
#include "cpu/available_threads.h"
#include "cpu/backend.h"

namespace towers::app {
namespace {

// What each rank may have its own of. Folders: those of the data may lie elsewhere on each machine,
// and the others are rank 0's alone.
const std::set<std::string> kOwn = {
    "compute_threads", "cpu_devices", "data_dir",     "input_threads", "log_device_placement",
    "log_level",       "progress",    "trace_file",   "trace_steps",   "metrics_log",
    "train_dir",       "quiet",       "stall_seconds"};

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

// The processors that this process may run on, and of which machine.
std::string processors() {
  std::string text = host_name();
  for (const int processor : cpu::allowed_processors()) text += " " + std::to_string(processor);
  return text;
}

}  // namespace

std::string unequal_flag(const std::string& flagfile, const std::string& leaders) {
  const auto mine = flags_of(flagfile), theirs = flags_of(leaders);
  auto names = mine;
  names.insert(theirs.begin(), theirs.end());
  const auto value_in = [](const auto& flags, const std::string& name) {
    const auto flag = flags.find(name);
    return flag == flags.end() ? std::string("not given") : flag->second;
  };
  for (const auto& [name, ignored] : names) {
    const std::string here = value_in(mine, name), there = value_in(theirs, name);
    if (here != there && !kOwn.contains(name)) return unequal_line(name, here, there);
  }
  return {};
}

void require_equal_flags(Ranks& ranks, const cli::CommonOptions& options,
                         const cli::Parsed& parsed) {
  if (ranks.alone()) return;
  std::string flagfile = parsed.flagfile;
  if (options.simd == "auto") {
    const std::string available = cpu::available_simd();
    flagfile = cli::with_flag(flagfile, "simd", available.substr(0, available.find(',')));
  }
  const std::string unequal = unequal_flag(flagfile, ranks.leaders(flagfile));
  if (!unequal.empty()) throw UsageError(unequal);
}

void share_threads(Ranks& ranks, cli::CommonOptions& options) {
  if (ranks.alone()) return;
  const std::vector<std::string> all = ranks.gather(processors());
  if (options.compute_threads != 0) return;
  const auto me = all.begin() + ranks.rank();
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), *me));
  const auto before = static_cast<int>(std::count(all.begin(), me, *me));
  const int threads = cpu::available_threads();
  options.compute_threads =
      std::max(1, threads * (before + 1) / sharing - threads * before / sharing);
}

}  // namespace towers::app
