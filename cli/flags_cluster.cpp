// Several processes, and the line they fit.

#include "cli/commands.h"
#include "cli/flag_rows.h"

namespace towers::cli {

std::vector<Flag> linear_flags() {
  using O = LinearOptions;
  const RealRange positive{.lowest = 0, .lowest_allowed = false};
  return {
      only("max_steps", Group::run, linear_bit,
           whole(&O::max_steps, std::int64_t{0}, std::int64_t{2147483647}),
           "updates in all, those before a restart too"),
      only("checkpoint_dir", Group::run, linear_bit, folder(&O::checkpoint_dir),
           "where the chief saves, and restores from at its start"),
      only("save_model_secs", Group::run, linear_bit, real(&O::save_model_secs, positive),
           "seconds between checkpoints"),
      only("reload", Group::run, linear_bit, boolean(&O::reload),
           "print what the latest checkpoint holds, and end"),
      only("seed", Group::run, linear_bit,
           with_default_text(whole(&O::seed, std::uint64_t{0}), "random"),
           "of the initial values and the examples"),
      only("learning_rate", Group::optimization, linear_bit, real(&O::learning_rate),
           "learning rate of all steps"),
      only("steps_to_validate", Group::output, linear_bit,
           whole(&O::steps_to_validate, std::int64_t{1}), "steps from one line to the next"),
  };
}

std::vector<Flag> cluster_flags() {
  using O = ClusterOptions;
  const auto group = Group::cluster;
  const unsigned commands = train_bit | linear_bit;
  const RealRange patience{.lowest = 0, .highest = 86400, .lowest_allowed = false};
  return {
      only("ps_hosts", group, commands,
           text(&O::ps_hosts, "LIST", "addresses host:port with commas between", anything),
           "addresses of the parameter servers, host:port,host:port"),
      only("worker_hosts", group, commands,
           text(&O::worker_hosts, "LIST", "addresses host:port with commas between", anything),
           "names of the workers, host:port,host:port, where nobody listens; the first is the "
           "chief"),
      only("job_name", group, commands, text(&O::job_name, "JOB", "ps or worker", anything),
           "what this process is: ps or worker"),
      only("task_index", group, commands, whole(&O::task_index, 0),
           "place of this process in the list of its job, from 0"),
      only("issync", group, commands, whole(&O::issync, 0, 1),
           "1: an update is the mean of all workers' gradients; 0: each gradient is an update"),
      only("replicas_to_aggregate", group, commands,
           with_default_text(whole(&O::replicas_to_aggregate, 1, 65536), "all workers"),
           "gradients per synchronous update; fewer than workers: the slowest are dropped"),
      only("ps_placement", group, commands, choice(&O::ps_placement, {"round_robin", "bytes"}),
           "deal variables out in turn, or each to the server that has least"),
      only("push_precision", group, commands, choice(&O::push_precision, {"fp32", "bf16"}),
           "of gradients on their way to the servers"),
      only("pull_precision", group, train_bit, choice(&O::pull_precision, {"fp32", "bf16"}),
           "of variables on their way to the workers; servers keep fp32"),
      only("worker_timeout", group, commands, real(&O::worker_timeout, patience),
           "seconds of silence after which a worker is lost"),
      only("cluster_timeout", group, commands, real(&O::cluster_timeout, patience),
           "seconds to wait for a task that is missing"),
      only("ps_keep_serving", group, commands, boolean(&O::ps_keep_serving),
           "servers stay after the last worker's goodbye"),
      only("stop_on_lost_worker", group, commands, boolean(&O::stop_on_lost_worker),
           "servers end the training rather than go on with those left"),
      only("cluster_token_file", group, commands, file(&O::cluster_token_file),
           "holds a secret that all tasks must have"),
      only("tls_cert", group, commands, file(&O::tls_cert),
           "this task's certificate: peers must have one too, and all is encrypted"),
      only("tls_key", group, commands, file(&O::tls_key), "the key of --tls_cert"),
      only("tls_ca", group, commands, file(&O::tls_ca),
           "the authority that signed the certificates of all tasks"),
  };
}

}  // namespace towers::cli
