#pragma once
// One parameter server.

#include "cluster/cluster_spec.h"
#include "cluster/hooks.h"
#include "cluster/membership.h"
#include "cluster/security.h"

namespace towers::cluster {

struct ServerOptions {
  ClusterSpec cluster;
  int index = 0;  // in cluster.ps_hosts
  Patience patience;
  Security security;
  bool keep_serving = false;         // one training after the other, until hooks.stop says so
  bool stop_on_lost_worker = false;  // rather than going on with those left
};

// Listens on its address of the cluster and serves until the last worker has said goodbye (at most
// 10 s longer), or hooks.stop says so and the workers have left, for which it waits 2 s at most, or
// as long as one lives that is told to end too and comes for a last checkpoint. Throws Error: the
// address cannot be listened on; somebody who is missing did not come for cluster_timeout; a lost
// worker with stop_on_lost_worker.
void serve(const ServerOptions& options, const Hooks& hooks);

}  // namespace towers::cluster
