#include "cluster/client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "cluster/channel.h"
#include "cluster/link.h"
#include "cluster/waiting.h"
#include "cluster/wire.h"
#include "core/error.h"

namespace towers::cluster {
namespace {

using wire::Reply;
using wire::Request;

constexpr auto kProbePause = std::chrono::milliseconds(50);
constexpr double kGrace = 3;          // seconds
constexpr double kNoticeSeconds = 2;  // that a server has to answer a sign of life
constexpr auto kRetry = std::chrono::milliseconds(100);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint64_t random_number() {
  std::random_device random;
  for (;;)
    if (const std::uint64_t number = std::uint64_t{random()} << 32 | random()) return number;
}

}  // namespace

class Client::Impl {
 public:
  Impl(const ClientOptions& options, const Hooks& hooks, Restore restore)
      : options_(options),
        hooks_(hooks),
        restore_(std::move(restore)),
        name_(worker_name(options.cluster, options.worker)),
        shards_(place(options.variables, options.cluster.servers(), options.placement)),
        waiting_(name_) {
    take_over_grpc_log({});
    options_.settings["--ps_hosts"] = joined(options.cluster.ps_hosts);
    options_.settings["--worker_hosts"] = joined(options.cluster.worker_hosts);
    presence_.set_worker(static_cast<std::uint32_t>(options.worker));
    presence_.set_process(random_number());
    for (int s = 0; s < options.cluster.servers(); ++s) {
      Server& server = servers_.emplace_back();
      server.name = ps_name(options.cluster, s);
      server.shard = &shards_[static_cast<std::size_t>(s)];
      server.values.resize(parts() * server.shard->size);
      server.link = std::make_unique<Link>(options.cluster.ps_hosts[static_cast<std::size_t>(s)],
                                           options.patience, options.security);
    }
    beat_seconds_ = options.patience.worker_timeout / 4;
    beats_ = std::thread([this] { beat(); });
  }

  ~Impl() {
    ending_ = true;
    beats_.join();
    // One that was never let in must not count as one that has left: the right one may still come.
    for (Server& server : servers_)
      if (server.joined || !refused_) server.link->goodbye(presence_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // averages: empty where they are not wanted.
  std::optional<std::int64_t> pull(std::span<float> values, std::span<float> averages) {
    bool was_ready = ready_;
    while (!stopped()) {
      if (!ready_ && !get_ready(values)) continue;
      request_.Clear();
      request_.set_kind(Request::PULL);
      request_.set_session(session_);
      request_.set_averages(!averages.empty());
      request_.set_bfloat16_values(options_.bfloat16_values);
      bool sent = true;
      for (Server& server : servers_) sent = sent && server.link->write(request_);
      if (sent && receive_values(values, averages, false)) {
        const std::int64_t step = servers_.front().step;
        if (!was_ready) hooks_.info(name_ + " takes part from step " + std::to_string(step));
        return step;
      }
      was_ready = false;
      start_anew();
    }
    return {};
  }

  std::optional<std::int64_t> push(std::span<const float> gradient, std::span<float> values) {
    if (!ready_) return pull(values, {});
    // A worker that restarted in the middle of an update may be ahead on some servers. There it
    // waits until the others are as far, since those wait for its gradient.
    std::int64_t oldest = servers_.front().step;
    for (const Server& server : servers_) oldest = std::min(oldest, server.step);
    bool sent = true;
    for (Server& server : servers_) {
      server.asked = !options_.rules.synchronous || server.step == oldest;
      if (sent && server.asked) sent = send_gradient(server, gradient);
    }
    if (sent && receive_values(values, {}, true)) return servers_.front().step;
    start_anew();
    return pull(values, {});
  }

  const Start& start() const { return start_; }
  std::uint64_t session() const { return session_; }
  std::int64_t dropped() const { return dropped_; }
  bool in_step() const {
    return std::all_of(servers_.begin(), servers_.end(), [this](const Server& server) {
      return server.step == servers_.front().step;
    });
  }

 private:
  struct Server {
    std::string name;
    const Shard* shard = nullptr;
    std::unique_ptr<Link> link;
    std::vector<float> values;          // of the shard, on their way; behind them the averages
    std::vector<std::uint16_t> halves;  // a gradient as bfloat16
    std::int64_t step = 0;              // of the variables that came last
    bool asked = true;                  // an answer is to come
    bool joined = false;                // at any time
    std::uint64_t session = 0;          // by its answer to HELLO
    Start start;                        // of that session
  };

  bool stopped() const { return hooks_.stop(); }
  std::size_t parts() const { return options_.rules.moving_averages ? 2 : 1; }

  // Answers may still be under way, or never come: a server may wait for a gradient that nobody
  // pushes any more. So the streams are closed.
  void start_anew() {
    ready_ = false;
    for (Server& server : servers_) server.link->close();
  }

  bool send_gradient(Server& server, std::span<const float> gradient) {
    const std::span<float> values = std::span(server.values).first(server.shard->size);
    server.shard->gather(gradient, values);
    request_.Clear();
    request_.set_kind(Request::PUSH);
    request_.set_session(session_);
    request_.set_step(server.step);
    request_.set_bfloat16(options_.bfloat16_gradients);
    request_.set_bfloat16_values(options_.bfloat16_values);
    const auto send = [&](const Request& chunk) { return server.link->write(chunk); };
    if (options_.bfloat16_gradients)
      return send_bfloat16_chunks(values, server.halves, request_, send);
    return send_chunks(std::span<const float>(values), request_, send);
  }

  // The answers of all servers that were asked. False: something is amiss, so all begins anew.
  bool receive_values(std::span<float> values, std::span<float> averages, bool asked_alone) {
    for (Server& server : servers_)
      if ((!asked_alone || server.asked) && !receive_shard(server, values, averages)) return false;
    waiting_.look(now(), {});
    begun_ = begun_ || servers_.front().step > start_.step;
    return true;
  }

  bool receive_shard(Server& server, std::span<float> values, std::span<float> averages) {
    const std::size_t size = server.shard->size;
    const std::span<float> all = std::span(server.values).first(averages.empty() ? size : 2 * size);
    const bool halves = options_.bfloat16_values && averages.empty();
    for (;;) {
      if (!server.link->read(reply_)) return false;
      check_refused();
      if (reply_.kind() == Reply::NOTICE) {
        say_notice();
        if (!all_in_session()) return false;
        continue;
      }
      if (reply_.kind() != Reply::VALUES || reply_.session() != session_ ||
          !(halves ? take_bfloat16_chunk(reply_, all) : take_chunk(reply_, all)))
        return false;
      server.step = reply_.step();
      if (&server == &servers_.front()) dropped_ = reply_.dropped();
      if (!reply_.last()) continue;
      server.shard->scatter(all.first(size), values);
      if (!averages.empty()) server.shard->scatter(all.subspan(size), averages);
      return true;
    }
  }

  // Whoever is waited for may itself have found another server lost, and wait for us to find out.
  bool all_in_session() {
    return std::all_of(servers_.begin(), servers_.end(), [this](Server& server) {
      return server.link->beat(presence_, kNoticeSeconds) == session_;
    });
  }

  void check_refused() {
    refused_ = reply_.kind() == Reply::REFUSED;
    if (refused_) throw Error(reply_.message());
  }

  void say_notice() {
    say(waiting_.look(now(), {{"the others", reply_.message()}}));
    if (reply_.absent() && waiting_.waited(now()) > options_.patience.cluster_timeout)
      give_up(reply_.message());
  }

  void say(const std::string& line) const {
    if (!line.empty()) hooks_.info(line);
  }

  [[noreturn]] void give_up(const std::string& missing) const {
    throw Error(name_ + " gave up after " + seconds_text(options_.patience.cluster_timeout) + ": " +
                missing + "; start what is missing, or give a longer --cluster_timeout");
  }

  // One round of coming into step with all servers; false: not yet, or stopped.
  bool get_ready(std::span<float> values) {
    std::vector<Missing> missing;
    bool same = true;
    busy_ = false;
    for (Server& server : servers_) {
      const std::string cause = hello(server);
      if (!cause.empty()) missing.push_back({server.name, cause});
      same = same && server.session == servers_.front().session;
    }
    const bool initialized = same && servers_.front().session != 0;
    if (missing.empty() && options_.worker == 0 && (!restored_ || !initialized)) {
      restored_ = initialize(values);
      return false;
    }
    if (missing.empty() && !initialized)
      missing.push_back(
          {worker_name(options_.cluster, 0),
           chief_came_ ? "has not put the variables in place yet" : "has not come yet"});
    say(waiting_.look(now(), missing));
    if (missing.empty()) {
      session_ = servers_.front().session;
      start_ = servers_.front().start;
      return ready_ = true;
    }
    // The other process of our number either dies within worker_timeout or is there to stay.
    if (busy_ && waiting_.waited(now()) > options_.patience.worker_timeout + kGrace)
      throw Error(list_of(missing) + "; give each worker a --task_index of its own");
    if (waiting_.waited(now()) > options_.patience.cluster_timeout) give_up(list_of(missing));
    std::this_thread::sleep_for(kRetry);
    return false;
  }

  static const std::string& cause_of(const Server& server) {
    const std::string& cause = server.link->cause();
    if (server.link->unauthorized()) throw Error(cause);
    if (const std::string why = final_refusal(cause); !why.empty())
      throw Error(server.name + " " + why);
    return cause;
  }

  // Why the server is not with us; empty: it is.
  std::string hello(Server& server) {
    server.session = 0;
    if (!server.link->open()) return cause_of(server);
    request_.Clear();
    request_.set_kind(Request::HELLO);
    request_.set_version(kProtocolVersion);
    *request_.mutable_presence() = presence_;
    request_.set_server(static_cast<std::uint32_t>(&server - servers_.data()));
    request_.set_size(server.shard->size);
    for (const auto& [name, value] : options_.settings) {
      wire::Setting* setting = request_.add_settings();
      setting->set_name(name);
      setting->set_value(value);
    }
    if (!server.link->write(request_)) return cause_of(server);
    if (!server.link->read(reply_)) return cause_of(server);
    check_refused();
    if (reply_.kind() == Reply::BUSY) {
      busy_ = true;
      return reply_.message();
    }
    server.joined = true;
    server.session = reply_.session();
    server.start = {reply_.start().step(), reply_.start().seed(), reply_.start().position()};
    chief_came_ = reply_.chief_came();
    begun_ = begun_ || reply_.begun();
    beat_seconds_ = std::min(beat_seconds_.load(), std::max(0.05, reply_.beat_seconds()));
    return "";
  }

  // The chief's variables to all servers, under a new session. False: one was lost over it.
  bool initialize(std::span<float> values) {
    averages_.resize(options_.rules.moving_averages ? options_.model_size : 0);
    const Start start = restore_(values, averages_);
    const UpdateRules& rules = options_.rules;
    const std::uint64_t session = random_number();
    for (Server& server : servers_) {
      const std::span<float> all = server.values;
      server.shard->gather(values, all.first(server.shard->size));
      if (rules.moving_averages) server.shard->gather(averages_, all.subspan(server.shard->size));
      request_.Clear();
      request_.set_kind(Request::INITIALIZE);
      request_.set_session(session);
      request_.set_begun(begun_);
      request_.mutable_start()->set_step(start.step);
      request_.mutable_start()->set_seed(start.seed);
      request_.mutable_start()->set_position(start.position);
      wire::Rules& sent = *request_.mutable_rules();
      sent.set_synchronous(rules.synchronous);
      sent.set_replicas_to_aggregate(static_cast<std::uint32_t>(rules.replicas_to_aggregate));
      sent.set_learning_rate(rules.schedule.learning_rate);
      sent.set_learning_rate_decay(rules.schedule.learning_rate_decay);
      sent.set_decay_steps(rules.schedule.decay_steps);
      sent.set_moving_average_decay(rules.schedule.moving_average_decay);
      sent.set_moving_averages(rules.moving_averages);
      if (!send_chunks(std::span<const float>(all), request_,
                       [&](const Request& chunk) { return server.link->write(chunk); }) ||
          !server.link->read(reply_))
        return false;
      check_refused();
    }
    return true;
  }

  // Signs of life, also while the worker computes or waits; and the end of its waits.
  void beat() {
    double next = 0;
    wire::Presence sign = presence_;
    while (!ending_) {
      if (stopped())
        for (Server& server : servers_) server.link->cancel();
      if (!sign.comes_once_more() && hooks_.comes_once_more && hooks_.comes_once_more()) {
        sign.set_comes_once_more(true);
        next = 0;  // a server that is told to end as well does not wait long for this
      }
      if (now() >= next) {
        // Servers that do not answer must not keep the signs from the others.
        const double each = beat_seconds_ / static_cast<double>(servers_.size());
        for (Server& server : servers_) server.link->beat(sign, each);
        next = now() + beat_seconds_ / 2;
      }
      std::this_thread::sleep_for(kProbePause);
    }
  }

  ClientOptions options_;
  Hooks hooks_;
  Restore restore_;
  std::string name_;
  std::vector<Shard> shards_;
  Waiting waiting_;
  std::vector<Server> servers_;
  wire::Presence presence_;
  bool restored_ = false;  // by this process
  bool ready_ = false;     // all servers have session_
  bool chief_came_ = false;
  bool begun_ = false;  // updates were made, by what this process or a server has seen
  bool refused_ = false;
  bool busy_ = false;  // in the last round a server had another process in our place
  std::uint64_t session_ = 0;
  Start start_;
  std::vector<float> averages_;  // the chief's, on their way to the servers
  std::int64_t dropped_ = 0;
  Request request_;
  Reply reply_;
  std::atomic<double> beat_seconds_{1};
  std::atomic<bool> ending_{false};
  std::thread beats_;
};

Client::Client(const ClientOptions& options, const Hooks& hooks, Restore restore)
    : impl_(std::make_unique<Impl>(options, hooks, std::move(restore))) {}
Client::~Client() = default;

std::optional<std::int64_t> Client::pull(std::span<float> values) {
  return impl_->pull(values, {});
}
std::optional<std::int64_t> Client::push(std::span<const float> gradient, std::span<float> values) {
  return impl_->push(gradient, values);
}
std::optional<std::int64_t> Client::pull(std::span<float> values, std::span<float> averages) {
  return impl_->pull(values, averages);
}
const Start& Client::start() const {
  return impl_->start();
}
std::uint64_t Client::session() const {
  return impl_->session();
}
bool Client::in_step() const {
  return impl_->in_step();
}
std::int64_t Client::dropped() const {
  return impl_->dropped();
}

}  // namespace towers::cluster
