// What one worker's stream asks of a server, and the answers.

#include "cluster/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>

#include "cluster/wire.h"

namespace towers::cluster {
namespace {

using wire::Reply;
using wire::Request;

// How often one who waits for an update looks whether its worker is still there, and how often it
// tells that worker whom it waits for.
constexpr auto kGlance = std::chrono::milliseconds(200);
constexpr int kGlancesPerNotice = 5;

// Of a chief's variables: far beyond any training, and updates can be counted on from there.
constexpr std::int64_t kLargestStep = std::int64_t{1} << 62;

std::optional<UpdateRules> rules_of(const wire::Rules& rules, int workers) {
  if (rules.decay_steps() < 1) return {};
  const auto replicas =
      std::clamp(rules.replicas_to_aggregate(), 1U, static_cast<std::uint32_t>(workers));
  return UpdateRules{.synchronous = rules.synchronous(),
                     .replicas_to_aggregate = static_cast<int>(replicas),
                     .schedule = {.learning_rate = rules.learning_rate(),
                                  .learning_rate_decay = rules.learning_rate_decay(),
                                  .decay_steps = rules.decay_steps(),
                                  .moving_average_decay = rules.moving_average_decay()},
                     .moving_averages = rules.moving_averages()};
}

std::optional<Start> start_of(const wire::Start& start) {
  if (start.step() < 0 || start.step() > kLargestStep) return {};
  return Start{start.step(), start.seed(), start.position()};
}

}  // namespace

Session::~Session() {
  const std::lock_guard lock(host_.mutex);
  if (worker_ >= 0) host_.members.disconnected(worker_, process_);
}

bool Session::answer() {
  if (request_.kind() == Request::HELLO) return hello();
  if (worker_ < 0) return refuse("the first message is no HELLO");
  if (!still_member()) return false;
  switch (request_.kind()) {
    case Request::INITIALIZE:
      return initialize();
    case Request::PULL:
      return pull();
    case Request::PUSH:
      return push();
    default:
      return refuse("a message of unknown kind");
  }
}

bool Session::reply(Reply::Kind kind, const std::string& message) {
  reply_.Clear();
  reply_.set_kind(kind);
  reply_.set_message(message);
  return stream_.Write(reply_);
}

bool Session::refuse(const std::string& why) {
  reply(Reply::REFUSED, host_.name() + ": " + why);
  return false;
}

bool Session::send_state() {
  reply_.Clear();
  reply_.set_kind(Reply::STATE);
  {
    const std::lock_guard lock(host_.mutex);
    reply_.set_session(host_.parameters.session());
    reply_.set_step(host_.parameters.step());
    const Start& start = host_.parameters.start();
    reply_.mutable_start()->set_step(start.step);
    reply_.mutable_start()->set_seed(start.seed);
    reply_.mutable_start()->set_position(start.position);
    reply_.set_begun(host_.has_begun());
    reply_.set_chief_came(!host_.agreed.empty());
    reply_.set_beat_seconds(host_.options.patience.worker_timeout / 4);
  }
  return stream_.Write(reply_);
}

bool Session::still_member() {
  std::string why;
  {
    const std::lock_guard lock(host_.mutex);
    host_.heard(worker_, process_);
    if (host_.members.presence(worker_) == Presence::absent) return false;  // of a former training
    if (!host_.failure.empty())
      why = host_.failure;
    else if (!host_.members.is(worker_, process_))
      why = "another process has come as " + host_.name_of(worker_);
  }
  return why.empty() || refuse(why);
}

bool Session::hello() {
  const wire::Presence& who = request_.presence();
  if (request_.version() != kProtocolVersion)
    return refuse("it speaks version " + std::to_string(kProtocolVersion) +
                  " of the protocol, this task version " + std::to_string(request_.version()) +
                  "; use the same program everywhere");
  if (who.worker() >= static_cast<std::uint32_t>(host_.options.cluster.workers()))
    return refuse("there is no worker " + std::to_string(who.worker()));
  if (worker_ >= 0 && (static_cast<int>(who.worker()) != worker_ || who.process() != process_))
    return refuse("a stream is of one worker");
  if (request_.size() > kLargestShard) return refuse("its share of the model is too large");
  Settings settings;
  for (const wire::Setting& setting : request_.settings())
    settings[setting.name()] = setting.value();
  std::string refused, busy;
  {
    const std::lock_guard lock(host_.mutex);
    refused = why_refused(static_cast<int>(who.worker()), settings);
    if (refused.empty()) busy = join(static_cast<int>(who.worker()), who.process(), settings);
  }
  if (!refused.empty()) return refuse(refused);
  return busy.empty() ? send_state() : reply(Reply::BUSY, busy);
}

std::string Session::why_refused(int worker, const Settings& settings) const {
  const ClusterSpec& cluster = host_.options.cluster;
  Settings addresses{{"--ps_hosts", joined(cluster.ps_hosts)},
                     {"--worker_hosts", joined(cluster.worker_hosts)}};
  Settings theirs = settings;
  for (auto& [name, value] : addresses) {
    const auto found = theirs.find(name);
    if (found == theirs.end() || found->second != value)
      return first_difference({{name, value}}, host_.name(),
                              {{name, found == theirs.end() ? "" : found->second}});
  }
  // Two names of one address: what is meant for one server would take the place of another's.
  if (request_.server() != static_cast<std::uint32_t>(host_.options.index))
    return "it is also reached as ps " + std::to_string(request_.server()) +
           ", so two entries of --ps_hosts are one address; give each server its own";
  if (!host_.failure.empty()) return host_.failure;
  if (worker == 0 || host_.agreed.empty()) return "";
  const std::string chief = host_.name_of(0);
  if (const auto difference = first_difference(host_.agreed, chief, settings); !difference.empty())
    return difference;
  return request_.size() == host_.size ? "" : "the model differs from that of " + chief;
}

std::string Session::join(int worker, std::uint64_t process, const Settings& settings) {
  const bool new_here = !host_.members.is(worker, process);
  if (!host_.members.join(worker, process, host_.now()))
    return "another process is " + host_.name_of(worker) + " there";
  if (worker_ < 0) host_.members.connected(worker, process);
  worker_ = worker;
  process_ = process;
  size_ = request_.size();
  if (worker == 0) {
    host_.agreed = settings;
    host_.size = request_.size();
  }
  if (new_here) {
    host_.hooks.info(host_.name() + ": " + host_.name_of(worker) + " has come");
    host_.parameters.forget(worker);
    host_.members_changed();
  }
  return "";
}

bool Session::is_next_chunk(std::uint64_t size, std::size_t bytes_per_value) {
  const std::uint64_t bytes = request_.values().size();
  if (request_.offset() == 0) received_ = 0;
  if (bytes % bytes_per_value != 0 || request_.offset() != received_ || received_ > size ||
      bytes / bytes_per_value > size - received_)
    return false;
  received_ += bytes / bytes_per_value;
  return !request_.last() || received_ == size;
}

bool Session::initialize() {
  const auto rules = rules_of(request_.rules(), host_.options.cluster.workers());
  const auto start = start_of(request_.start());
  if (worker_ != 0 || request_.session() == 0 || !rules || !start ||
      !is_next_chunk(rules->moving_averages ? 2 * size_ : size_, sizeof(float)))
    return refuse("malformed variables");
  // Memory grows with what has come, whatever size the chief has told.
  incoming_.resize(received_);
  if (!take_chunk(request_, incoming_)) return refuse("malformed variables");
  if (!request_.last()) return true;
  {
    const std::lock_guard lock(host_.mutex);
    host_.begun = host_.has_begun() || request_.begun();
    host_.parameters.initialize(request_.session(), *start, incoming_, *rules);
    // In synchronous training they had all come before the first update.
    if (host_.begun && rules->synchronous) host_.members.expect_back(host_.now());
    host_.members_changed();
  }
  return send_state();
}

bool Session::pull() {
  std::unique_lock lock(host_.mutex);
  return answer_values(lock);
}

bool Session::take_gradient_chunk() {
  const std::size_t bytes = request_.bfloat16() ? sizeof(std::uint16_t) : sizeof(float);
  if (!is_next_chunk(host_.parameters.values().size(), bytes)) return false;
  const std::span<float> gradient = request_.offset() == 0
                                        ? host_.parameters.begin_gradient(worker_)
                                        : host_.parameters.gradient(worker_);
  return request_.bfloat16() ? take_bfloat16_chunk(request_, gradient)
                             : take_chunk(request_, gradient);
}

bool Session::push() {
  std::unique_lock lock(host_.mutex);
  if (request_.session() != host_.parameters.session() || request_.session() == 0) {
    const bool last = request_.last();
    lock.unlock();
    return !last || reply(Reply::OTHER_SESSION);
  }
  if (!take_gradient_chunk()) {
    lock.unlock();
    return refuse("malformed gradient");
  }
  if (!request_.last()) return true;
  const PushOutcome outcome = host_.parameters.push(worker_, request_.session(), request_.step());
  if (outcome == PushOutcome::pending) {
    if (!wait_for_update(lock)) return false;
  } else if (outcome == PushOutcome::applied && host_.parameters.rules().synchronous) {
    host_.changed.notify_all();
  }
  return answer_values(lock);
}

bool Session::wait_for_update(std::unique_lock<std::mutex>& lock) {
  const auto over = [this] {
    return !host_.parameters.is_pending(worker_) || host_.closing || !host_.failure.empty();
  };
  for (int glance = 1; !over(); ++glance) {
    if (cancelled_()) return false;
    if (host_.changed.wait_for(lock, kGlance, over)) break;
    if (glance % kGlancesPerNotice != 0) continue;
    bool absent = false;
    const std::string text = host_.waited_for(absent);
    lock.unlock();
    reply_.Clear();
    reply_.set_kind(Reply::NOTICE);
    reply_.set_message(text);
    reply_.set_absent(absent);
    if (!stream_.Write(reply_)) return false;
    lock.lock();
  }
  if (host_.closing) return false;
  if (host_.failure.empty()) return true;
  const std::string why = host_.failure;
  lock.unlock();
  return refuse(why);
}

bool Session::answer_values(std::unique_lock<std::mutex>& lock) {
  const Parameters& parameters = host_.parameters;
  if (parameters.session() != request_.session() || request_.session() == 0) {
    lock.unlock();
    return reply(Reply::OTHER_SESSION);
  }
  reply_.Clear();
  reply_.set_kind(Reply::VALUES);
  reply_.set_session(parameters.session());
  reply_.set_step(parameters.step());
  reply_.set_dropped(parameters.dropped());
  outgoing_.assign(parameters.values().begin(), parameters.values().end());
  if (request_.averages())
    outgoing_.insert(outgoing_.end(), parameters.averages().begin(), parameters.averages().end());
  lock.unlock();
  const auto send = [this](const Reply& chunk) { return stream_.Write(chunk); };
  if (request_.bfloat16_values() && !request_.averages())
    return send_bfloat16_chunks(outgoing_, halves_, reply_, send);
  return send_chunks(std::span<const float>(outgoing_), reply_, send);
}

}  // namespace towers::cluster
