#pragma once
// Which variable lives on which parameter server.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace towers::cluster {

// A trainable variable, as a part of the model's flat buffer.
struct ModelVariable {
  std::string name;
  std::size_t offset = 0;  // in values
  std::size_t size = 0;
};

// What one server holds: its variables one behind the other, without gaps.
struct Shard {
  struct Slice {
    std::size_t model_offset = 0;
    std::size_t shard_offset = 0;
    std::size_t size = 0;
  };
  std::vector<Slice> slices;
  std::size_t size = 0;  // in values

  // Between the model's flat buffer and the shard's.
  void gather(std::span<const float> model, std::span<float> shard) const;
  void scatter(std::span<const float> shard, std::span<float> model) const;
};

// How variables are dealt out, in order of creation; global_step (4 bytes, on server 0) comes
// first. round_robin: as TensorFlow's replica_device_setter, so the first trainable variable goes
// to server 1 where there is one. bytes: each to the server that has least so far, as TensorFlow's
// GreedyLoadBalancingStrategy by byte_size_load_fn.
enum class PlacementRule { round_robin, bytes };

std::vector<Shard> place(const std::vector<ModelVariable>& variables, int servers,
                         PlacementRule rule);

}  // namespace towers::cluster
