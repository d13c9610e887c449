#pragma once
// A worker's side: the model's variables, wherever they live.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/cluster_spec.h"
#include "cluster/hooks.h"
#include "cluster/membership.h"
#include "cluster/parameters.h"
#include "cluster/placement.h"
#include "cluster/security.h"
#include "cluster/variable_store.h"

namespace towers::cluster {

struct ClientOptions {
  ClusterSpec cluster;
  int worker = 0;  // 0: the chief
  Patience patience;
  Security security;
  UpdateRules rules;
  std::vector<ModelVariable> variables;  // in order of creation
  std::size_t model_size = 0;            // values of the flat buffer that they are parts of
  PlacementRule placement = PlacementRule::round_robin;
  // What travels as bfloat16, rounded to nearest even: gradients on their way to the servers, and
  // variables on their way back, but for a pull with averages.
  bool bfloat16_gradients = false, bfloat16_values = false;
  // What all tasks must agree on, beside the addresses, by name: "--learning_rate".
  std::map<std::string, std::string> settings;
};

// On the parameter servers. Every function waits for who is missing, says whom, and throws Error
// after cluster_timeout, or when a server refuses this worker. Not thread-safe.
class Client : public VariableStore {
 public:
  // restore: of the chief, which is asked at its start, and again when a server was lost; the
  // others wait for it.
  Client(const ClientOptions& options, const Hooks& hooks, Restore restore);
  ~Client() override;  // says goodbye
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Where a server was lost, a pushed gradient is too, and what comes are the chief's new
  // variables, of another session.
  std::optional<std::int64_t> pull(std::span<float> values) override;
  std::optional<std::int64_t> push(std::span<const float> gradient,
                                   std::span<float> values) override;
  std::optional<std::int64_t> pull(std::span<float> values, std::span<float> averages) override;
  const Start& start() const override;
  std::uint64_t session() const override;

  // Whether the variables that came last are of one step on all servers.
  bool in_step() const;
  // Gradients that came too late, by the server of global_step.
  std::int64_t dropped() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace towers::cluster
