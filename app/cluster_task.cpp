#include "app/cluster_task.h"

#include "app/signals.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cluster/launch.h"
#include "cluster/server.h"
#include "core/error.h"

namespace towers::app {
namespace {

cluster::Patience patience_of(const cli::ClusterOptions& options) {
  return {.worker_timeout = options.worker_timeout, .cluster_timeout = options.cluster_timeout};
}

cluster::Security security_of(const cli::ClusterOptions& options) {
  return cluster::read_security({.token = options.cluster_token_file,
                                 .certificate = options.tls_cert,
                                 .key = options.tls_key,
                                 .authority = options.tls_ca});
}

}  // namespace

bool is_distributed(const cli::ClusterOptions& options) {
  return !options.ps_hosts.empty() || !options.worker_hosts.empty() || !options.job_name.empty();
}

void refuse_cluster_flags_alone(const cli::ClusterOptions& options) {
  const cli::ClusterOptions defaults;
  std::string given;
  for (const cli::Flag& flag : cli::flags()) {
    // Patience, of which one alone needs none, changes nothing.
    if (flag.group != cli::Group::cluster || flag.name.ends_with("_timeout")) continue;
    const auto value = flag.value.get(options);
    if (value && value != flag.value.get(defaults))
      given += (given.empty() ? "--" : ", --") + flag.name + "=" + *value;
  }
  if (!given.empty())
    throw UsageError(given + ": for training on parameter servers, and none are named; give " +
                     "--ps_hosts, --worker_hosts, --job_name and --task_index, or none of these");
}

ClusterTask cluster_task(const cli::ClusterOptions& options) {
  if (const auto launch = cluster::find_launch())
    throw UsageError(
        "--ps_hosts, --worker_hosts and --job_name are of parameter servers, whose tasks do not "
        "join as the processes of an mpirun or srun do (" +
        launch->variable +
        " is set); leave them out, or start each task by itself (srun --mpi=none, or " +
        cluster::kAlone + " towers ...)");
  ClusterTask task{.cluster = cluster::parse_cluster(options.ps_hosts, options.worker_hosts),
                   .task = {}};
  task.task = cluster::parse_task(task.cluster, options.job_name, options.task_index);
  const int replicas = options.replicas_to_aggregate.value_or(1);
  if (replicas > task.cluster.workers())
    throw UsageError("--replicas_to_aggregate=" + std::to_string(replicas) +
                     ": an update takes one gradient of each worker, and --worker_hosts has " +
                     std::to_string(task.cluster.workers()));
  if (options.replicas_to_aggregate && options.issync == 0)
    throw UsageError("--replicas_to_aggregate=" + std::to_string(replicas) +
                     " is for synchronous training; give --issync=1 too, or leave it out");
  return task;
}

int run_parameter_server(const cli::ClusterOptions& options, const ClusterTask& task) {
  const std::string& address = task.cluster.ps_hosts[static_cast<std::size_t>(task.task.index)];
  const cluster::Security security = security_of(options);
  if (!cluster::is_loopback(cluster::host_of(address)) && !security.has_token() &&
      !security.has_tls())
    cli::log_warning("whoever reaches " + address +
                     " can read and change the variables; --cluster_token_file or --tls_cert keep "
                     "strangers out");
  SignalGuard signals;
  cluster::serve({.cluster = task.cluster,
                  .index = task.task.index,
                  .patience = patience_of(options),
                  .security = security,
                  .keep_serving = options.ps_keep_serving,
                  .stop_on_lost_worker = options.stop_on_lost_worker},
                 cluster_hooks());
  return exit_code_of(SignalGuard::received());
}

cluster::UpdateRules update_rules(const cli::ClusterOptions& options, const ClusterTask& task) {
  return {.synchronous = options.issync == 1,
          .replicas_to_aggregate = options.replicas_to_aggregate.value_or(task.cluster.workers()),
          .schedule = {},
          .moving_averages = false};
}

cluster::ClientOptions client_options(const cli::ClusterOptions& options, const ClusterTask& task) {
  const cluster::UpdateRules rules = update_rules(options, task);
  return {.cluster = task.cluster,
          .worker = task.task.index,
          .patience = patience_of(options),
          .security = security_of(options),
          .rules = rules,
          .variables = {},
          .model_size = 0,
          .placement = options.ps_placement == "bytes" ? cluster::PlacementRule::bytes
                                                       : cluster::PlacementRule::round_robin,
          .bfloat16_gradients = options.push_precision == "bf16",
          .bfloat16_values = options.pull_precision == "bf16",
          .settings = {{"--issync", std::to_string(options.issync)},
                       {"--replicas_to_aggregate", std::to_string(rules.replicas_to_aggregate)},
                       {"--ps_placement", options.ps_placement},
                       {"--push_precision", options.push_precision},
                       {"--pull_precision", options.pull_precision}}};
}

cluster::Hooks cluster_hooks() {
  return {.info = cli::log_info, .warning = cli::log_warning, .stop = [] {
            return SignalGuard::received() != 0;
          }};
}

}  // namespace towers::app
