#include "cluster/placement.h"

#include <algorithm>

namespace towers::cluster {

void Shard::gather(std::span<const float> model, std::span<float> shard) const {
  for (const Slice& s : slices)
    std::copy_n(model.data() + s.model_offset, s.size, shard.data() + s.shard_offset);
}

void Shard::scatter(std::span<const float> shard, std::span<float> model) const {
  for (const Slice& s : slices)
    std::copy_n(shard.data() + s.shard_offset, s.size, model.data() + s.model_offset);
}

std::vector<Shard> place(const std::vector<ModelVariable>& variables, int servers,
                         PlacementRule rule) {
  std::vector<Shard> shards(static_cast<std::size_t>(servers));
  std::vector<std::size_t> load(shards.size());  // values
  load[0] = 1;                                   // global_step
  std::size_t next = 1 % shards.size();
  for (const ModelVariable& variable : variables) {
    if (rule == PlacementRule::bytes)
      next = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    Shard& shard = shards[next];
    shard.slices.push_back({variable.offset, shard.size, variable.size});
    shard.size += variable.size;
    load[next] += variable.size;
    next = (next + 1) % shards.size();
  }
  return shards;
}

}  // namespace towers::cluster
