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

std::vector<Shard> place_round_robin(const std::vector<ModelVariable>& variables, int servers) {
  std::vector<Shard> shards(static_cast<std::size_t>(servers));
  std::size_t next = 1 % shards.size();  // global_step is on server 0
  for (const ModelVariable& variable : variables) {
    Shard& shard = shards[next];
    shard.slices.push_back({variable.offset, shard.size, variable.size});
    shard.size += variable.size;
    next = (next + 1) % shards.size();
  }
  return shards;
}

}  // namespace towers::cluster
