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

// Round robin in order of creation, as TensorFlow's replica_device_setter: global_step comes first
// and goes to server 0, so the first trainable variable goes to server 1 where there is one.
std::vector<Shard> place_round_robin(const std::vector<ModelVariable>& variables, int servers);

}  // namespace towers::cluster
