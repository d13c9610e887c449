#include "cuda/visible_devices.h"

#include <algorithm>
#include <string_view>

namespace towers::cuda {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool is_device(std::string_view entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return entry.size() > 4;
  return !entry.empty() &&
         std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

VisibleDevices parse_visible_devices(const std::optional<std::string>& value) {
  VisibleDevices result;
  if (!value) return result;
  result.set = true;
  std::string_view rest = *value;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string entry(without_blanks(rest.substr(0, comma)));
    if (!is_device(entry)) {
      result.refused = entry;
      return result;
    }
    if (std::find(result.entries.begin(), result.entries.end(), entry) != result.entries.end())
      result.twice = entry;
    result.entries.push_back(entry);
    if (comma == std::string_view::npos) return result;
    rest.remove_prefix(comma + 1);
  }
}

std::string describe_visible_devices(const std::optional<std::string>& value) {
  const VisibleDevices visible = parse_visible_devices(value);
  if (!visible.set) return "CUDA_VISIBLE_DEVICES: not set";
  std::string text = "CUDA_VISIBLE_DEVICES: " + (value->empty() ? "empty" : *value);
  if (visible.hides_all()) return text + " (hides every GPU)";
  if (visible.refused) text += " ('" + *visible.refused + "' names no GPU and hides all after it)";
  if (!visible.twice.empty())
    text += " (" + visible.twice + " appears twice, which CUDA may answer with no GPU at all)";
  return text;
}

}  // namespace towers::cuda
