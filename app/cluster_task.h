#pragma once
// The flags of a cluster as cluster/ takes them, for every command that trains on several
// processes.

#include "cli/options.h"
#include "cluster/client.h"

namespace towers::app {

// Whether any flag says that there are several processes.
bool is_distributed(const cli::ClusterOptions& options);

// Throws UsageError where there is another flag of clusters, and is_distributed() is false: a
// process that trained alone would pass over it.
void refuse_cluster_flags_alone(const cli::ClusterOptions& options);

// Who takes part, and which of them this process is. Throws UsageError.
struct ClusterTask {
  cluster::ClusterSpec cluster;
  cluster::Task task;
};
ClusterTask cluster_task(const cli::ClusterOptions& options);

// A parameter server, to its end; the exit code.
int run_parameter_server(const cli::ClusterOptions& options, const ClusterTask& task);

// How the servers update; the schedule is the command's to add.
cluster::UpdateRules update_rules(const cli::ClusterOptions& options, const ClusterTask& task);

// What all workers have; the model and its settings are the command's to add.
cluster::ClientOptions client_options(const cli::ClusterOptions& options, const ClusterTask& task);

// Log lines on stderr; the end by a signal.
cluster::Hooks cluster_hooks();

}  // namespace towers::app
