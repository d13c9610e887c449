#include "cuda/surroundings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "cuda/visible_devices.h"

namespace towers::cuda {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The smallest of the paths in `folder` that `wanted` takes; empty without one or without a folder.
template <class Wanted>
fs::path first_in(const fs::path& folder, Wanted wanted) {
  fs::path first;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (wanted(it->path()) && (first.empty() || it->path() < first)) first = it->path();
  return first;
}

bool is_gpu_node(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 6 && name.starts_with("nvidia") &&
         std::all_of(name.begin() + 6, name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string device_node() {
  std::error_code ignored;
  if (fs::exists("/dev/dxg", ignored) && fs::exists("/usr/lib/wsl/lib/libcuda.so.1", ignored))
    return "/dev/dxg";
  return first_in("/dev", is_gpu_node).string();
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

bool is_nvidia_display(const fs::path& device) {
  return first_line(device / "vendor") == "0x10de" &&
         first_line(device / "class").starts_with("0x03");
}

std::vector<fs::path> module_places() {
  if (const auto file = environment("TOWERS_CUDA_MODULE")) return {*file};
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  return {folder / "libtowers_cuda.so",
          folder.parent_path() / "lib" / "towers" / "libtowers_cuda.so"};
}

}  // namespace

Surroundings look_around() {
  Surroundings s;
  s.visible_devices = environment("CUDA_VISIBLE_DEVICES");
  s.device_node = device_node();
  s.pci_device = first_in("/sys/bus/pci/devices", is_nvidia_display).filename().string();
  s.library_path = environment("LD_LIBRARY_PATH").value_or("");
  s.modules = module_places();
  return s;
}

NvidiaPresence nvidia_presence(const Surroundings& surroundings) {
  if (surroundings.device_node.empty())
    return surroundings.pci_device.empty() ? NvidiaPresence::none : NvidiaPresence::without_driver;
  return parse_visible_devices(surroundings.visible_devices).hides_all() ? NvidiaPresence::hidden
                                                                         : NvidiaPresence::present;
}

}  // namespace towers::cuda
