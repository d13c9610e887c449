#include "app/rank_devices.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "app/gpu_share.h"
#include "app/rank_settings.h"
#include "core/error.h"

namespace towers::app {
namespace {

std::string to_text(const RankGpus& rank) {
  std::string text = rank.host;
  for (const RankGpu& gpu : rank.gpus) text += "\n" + gpu.uuid + " " + gpu.pci_bus_id;
  return text;
}

RankGpus to_rank_gpus(const std::string& text) {
  RankGpus rank;
  std::istringstream words(text);
  std::getline(words, rank.host);
  for (RankGpu gpu; words >> gpu.uuid >> gpu.pci_bus_id;) rank.gpus.push_back(gpu);
  return rank;
}

void require_equal_kind(Ranks& ranks, const Backend& backend) {
  const auto kind = [](DeviceKind k) { return k == DeviceKind::gpu ? "GPUs" : "the CPU"; };
  const std::string mine = kind(backend.devices().front().kind), first = ranks.leaders(mine);
  if (mine != first)
    throw Error("trains on " + mine + " and rank 0 on " + first +
                "; give --device=cpu or --device=gpu to all processes, and see `towers devices` on "
                "both machines");
}

void require_own_gpus(Ranks& ranks, const Backend& backend, const Placement& placement) {
  RankGpus mine{host_name(), {}};
  for (const int d :
       std::set<int>(placement.device_of_tower.begin(), placement.device_of_tower.end())) {
    const Device& gpu = backend.devices()[static_cast<std::size_t>(d)];
    mine.gpus.push_back({gpu.uuid, gpu.pci_bus_id});
  }
  std::vector<RankGpus> used;
  for (const std::string& text : ranks.gather(to_text(mine))) used.push_back(to_rank_gpus(text));
  const std::string twice = gpu_used_twice(used);
  if (!twice.empty()) throw Error(twice);
}

}  // namespace

Placement place(const cli::TrainOptions& options, const Backend& backend, Ranks* ranks) {
  const std::vector<Device>& devices = backend.devices();
  const bool several = ranks != nullptr && !ranks->alone();
  const bool on_cpu = devices.front().kind == DeviceKind::cpu;
  if (several) require_equal_kind(*ranks, backend);
  if (several && on_cpu) require_equal_arithmetic(*ranks, options);
  if (!several || on_cpu)
    return place_towers(options.num_gpus, devices, options.allow_soft_placement);

  std::string seen;
  for (const Device& gpu : devices) seen += gpu.uuid + " ";
  GpuShare share =
      gpu_share_of(ranks->gather(seen), ranks->rank(), static_cast<int>(devices.size()));
  // With more ranks than GPUs two have one; which, is said below.
  share.end = std::max(share.end, share.begin + 1);
  Placement placement =
      place_towers(options.num_gpus, {devices.begin() + share.begin, devices.begin() + share.end},
                   options.allow_soft_placement);
  for (int& device : placement.device_of_tower) device += share.begin;
  require_own_gpus(*ranks, backend, placement);
  return placement;
}

}  // namespace towers::app
