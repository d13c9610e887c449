#pragma once
// CUDA_VISIBLE_DEVICES: which GPUs exist for this process, and in what order. The driver obeys it;
// it is read here to tell "hidden" from "not there". Entries are numbers, or beginnings of
// "GPU-..." and "MIG-..." names; one that is neither hides itself and all after it (CUDA C++
// Programming Guide, "CUDA Environment Variables").

#include <optional>
#include <string>
#include <vector>

namespace towers::cuda {

struct VisibleDevices {
  bool set = false;
  std::vector<std::string> entries{};    // up to the first that is none, without blanks around them
  std::optional<std::string> refused{};  // that one
  std::string twice{};  // an entry that appears again: the driver may then show no GPU

  bool hides_all() const { return set && entries.empty(); }
};

VisibleDevices parse_visible_devices(const std::optional<std::string>& value);

// For people: "CUDA_VISIBLE_DEVICES: 2,0", "CUDA_VISIBLE_DEVICES: not set", and what is odd about
// it.
std::string describe_visible_devices(const std::optional<std::string>& value);

}  // namespace towers::cuda
