// A server's sessions without a network: what it takes from a worker, and many workers at once.

#include "cluster/session.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <thread>

#include "cluster/service.h"
#include "cluster/wire.h"

namespace towers::cluster {
namespace {

using wire::Reply;
using wire::Request;

constexpr std::uint64_t kSession = 5;

ServerOptions options_for(int workers) {
  ServerOptions options;
  options.cluster.ps_hosts = {"p:1"};
  for (int w = 0; w < workers; ++w)
    options.cluster.worker_hosts.push_back("w:" + std::to_string(w + 1));
  return options;
}

const Hooks kQuiet{[](const std::string&) {}, [](const std::string&) {}, [] { return false; }};

// A worker's end: one request at a time, and the last reply that is no notice.
class Worker final : public Session::Stream {
 public:
  Worker(Host& host, int worker)
      : options_(host.options), worker_(worker), session_(host, *this, [] { return false; }) {}

  // False when the session is over.
  bool ask(const Request& request) {
    request_ = request;
    reply_.Clear();
    return session_.answer_next();
  }
  const Reply& reply() const { return reply_; }

  Request hello(std::uint64_t size) const {
    Request request;
    request.set_kind(Request::HELLO);
    request.set_version(kProtocolVersion);
    request.mutable_presence()->set_worker(static_cast<std::uint32_t>(worker_));
    request.mutable_presence()->set_process(process());
    request.set_size(size);
    for (const auto& [name, value] :
         {std::pair{"--ps_hosts", joined(options_.cluster.ps_hosts)},
          std::pair{"--worker_hosts", joined(options_.cluster.worker_hosts)}}) {
      wire::Setting& setting = *request.add_settings();
      setting.set_name(name);
      setting.set_value(value);
    }
    return request;
  }
  std::uint64_t process() const { return 100 + static_cast<std::uint64_t>(worker_); }

 private:
  void SendInitialMetadata() override {}
  bool NextMessageSize(std::uint32_t*) override { return true; }
  bool Read(Request* request) override {
    *request = request_;
    return true;
  }
  bool Write(const Reply& reply, grpc::WriteOptions) override {
    if (reply.kind() != Reply::NOTICE) reply_ = reply;
    return true;
  }

  const ServerOptions& options_;
  int worker_;
  Request request_;
  Reply reply_;
  Session session_;
};

Request chunk(Request::Kind kind, std::int64_t step, std::uint64_t offset,
              const std::vector<float>& values, bool last) {
  Request request;
  request.set_kind(kind);
  request.set_session(kSession);
  request.set_step(step);
  request.mutable_start()->set_step(step);
  wire::Rules& rules = *request.mutable_rules();
  rules.set_learning_rate(0.5f);
  rules.set_decay_steps(1000);
  rules.set_replicas_to_aggregate(1000);
  request.set_offset(offset);
  request.set_values(values.data(), values.size() * sizeof(float));
  request.set_last(last);
  return request;
}

std::vector<float> values_of(const Reply& reply) {
  std::vector<float> values(reply.values().size() / sizeof(float));
  std::memcpy(values.data(), reply.values().data(), reply.values().size());
  return values;
}

}  // namespace

TEST_CASE("Variables come in chunks, in order and whole, and take no memory before") {
  const Request good = chunk(Request::INITIALIZE, 7, 0, {1, 2}, false);
  const auto refused = [&](const std::vector<Request>& requests, std::uint64_t size = 3) {
    Host host(options_for(1), kQuiet);
    Worker chief(host, 0);
    REQUIRE(chief.ask(chief.hello(size)));
    for (const Request& request : requests)
      if (!chief.ask(request)) return chief.reply().message();
    return std::string();
  };
  CHECK(refused({good, chunk(Request::INITIALIZE, 7, 2, {3}, true)}) == "");
  const std::string malformed = "ps 0 (p:1): malformed variables";
  CHECK(refused({good, chunk(Request::INITIALIZE, 7, 1, {3}, false)}) == malformed);    // twice
  CHECK(refused({chunk(Request::INITIALIZE, 7, 1, {2, 3}, true)}) == malformed);        // a gap
  CHECK(refused({chunk(Request::INITIALIZE, 7, 0, {1, 2}, true)}) == malformed);        // too few
  CHECK(refused({chunk(Request::INITIALIZE, 7, 0, {1, 2, 3, 4}, true)}) == malformed);  // too many
  CHECK(refused({chunk(Request::INITIALIZE, -1, 0, {1, 2, 3}, true)}) == malformed);
  CHECK(refused({chunk(Request::INITIALIZE, std::int64_t{1} << 62, 0, {1, 2, 3}, true)}) == "");
  CHECK(refused({chunk(Request::INITIALIZE, (std::int64_t{1} << 62) + 1, 0, {1, 2, 3}, true)}) ==
        malformed);
  // 4 GiB are announced, and two values come.
  CHECK(refused({good}, kLargestShard) == "");
  CHECK(refused({good, chunk(Request::INITIALIZE, 7, 2, {3}, true)}, kLargestShard) == malformed);
}

TEST_CASE("Variables come with rules that make sense, and with their averages where those say so") {
  Host host(options_for(1), kQuiet);
  Worker chief(host, 0);
  REQUIRE(chief.ask(chief.hello(2)));
  Request variables = chunk(Request::INITIALIZE, 7, 0, {1, 2, 3, 4}, true);
  variables.mutable_rules()->set_moving_averages(true);
  variables.mutable_start()->set_seed(11);
  variables.mutable_start()->set_position(12);
  REQUIRE(chief.ask(variables));
  CHECK(chief.reply().start().seed() == 11);
  CHECK(chief.reply().start().position() == 12);
  Request pull = chunk(Request::PULL, 0, 0, {}, true);
  REQUIRE(chief.ask(pull));
  CHECK(values_of(chief.reply()) == std::vector<float>{1, 2});
  pull.set_averages(true);
  REQUIRE(chief.ask(pull));
  CHECK(values_of(chief.reply()) == std::vector<float>{1, 2, 3, 4});
  variables.set_values(variables.values().substr(0, 8));  // without the averages
  CHECK_FALSE(chief.ask(variables));
  Worker again(host, 0);
  REQUIRE(again.ask(again.hello(2)));
  Request endless = chunk(Request::INITIALIZE, 7, 0, {1, 2}, true);
  endless.mutable_rules()->set_decay_steps(0);  // the step is divided by it
  CHECK_FALSE(again.ask(endless));
  CHECK(again.reply().message() == "ps 0 (p:1): malformed variables");
}

TEST_CASE("A gradient in bfloat16 is half as long") {
  Host host(options_for(1), kQuiet);
  Worker chief(host, 0);
  REQUIRE(chief.ask(chief.hello(3)));
  REQUIRE(chief.ask(chunk(Request::INITIALIZE, 0, 0, {1, 2, 3}, true)));
  Request push = chunk(Request::PUSH, 0, 0, {}, true);
  push.set_bfloat16(true);
  const std::uint16_t gradient[] = {to_bfloat16(2), to_bfloat16(4), to_bfloat16(-2)};
  push.set_values(gradient, sizeof gradient);
  REQUIRE(chief.ask(push));
  CHECK(values_of(chief.reply()) == std::vector<float>{0, 0, 4});
  push.set_bfloat16(false);  // not three values any more
  CHECK_FALSE(chief.ask(push));
}

TEST_CASE("Variables in bfloat16 are half as long, and whole with their averages") {
  Host host(options_for(1), kQuiet);
  Worker chief(host, 0);
  REQUIRE(chief.ask(chief.hello(2)));
  const float third = 1.0f / 3;
  Request variables = chunk(Request::INITIALIZE, 0, 0, {third, 2, third, 4}, true);
  variables.mutable_rules()->set_moving_averages(true);
  REQUIRE(chief.ask(variables));
  Request pull = chunk(Request::PULL, 0, 0, {}, true);
  pull.set_bfloat16_values(true);
  REQUIRE(chief.ask(pull));
  const std::uint16_t rounded[] = {to_bfloat16(third), to_bfloat16(2)};
  REQUIRE(chief.reply().values().size() == sizeof rounded);
  CHECK(std::memcmp(chief.reply().values().data(), rounded, sizeof rounded) == 0);
  pull.set_averages(true);
  REQUIRE(chief.ask(pull));
  CHECK(values_of(chief.reply()) == std::vector<float>{third, 2, third, 4});
}

TEST_CASE("What is meant for another server is refused") {
  Host host(options_for(1), kQuiet);
  Worker chief(host, 0);
  Request hello = chief.hello(2);
  hello.set_server(1);
  CHECK_FALSE(chief.ask(hello));
  CHECK(chief.reply().kind() == Reply::REFUSED);
  CHECK_THAT(chief.reply().message(), Catch::Contains("two entries of --ps_hosts are one address"));
}

TEST_CASE("A server that is kept has forgotten a training when the next begins") {
  Host host(options_for(2), kQuiet);
  Worker chief(host, 0);
  REQUIRE(chief.ask(chief.hello(1)));
  REQUIRE(chief.ask(chunk(Request::INITIALIZE, 0, 0, {1}, true)));
  REQUIRE(chief.ask(chunk(Request::PUSH, 0, 0, {1}, true)));
  {
    const std::lock_guard lock(host.mutex);
    CHECK(host.has_begun());
    host.leave(0, chief.process());
    host.begin_anew();
  }
  CHECK_FALSE(chief.ask(chunk(Request::PUSH, 0, 0, {1}, true)));  // of the former one
  Worker next(host, 1);
  Request hello = next.hello(3);
  wire::Setting& other = *hello.add_settings();
  other.set_name("--max_steps");
  other.set_value("9");
  REQUIRE(next.ask(hello));  // before its chief, with flags of its own
  CHECK(next.reply().kind() == Reply::STATE);
  CHECK(next.reply().session() == 0);
  CHECK_FALSE(next.reply().chief_came());
  CHECK_FALSE(next.reply().begun());
}

TEST_CASE("A gradient that is not whole changes nothing") {
  Host host(options_for(1), kQuiet);
  for (const Request& bad :
       {chunk(Request::PUSH, 7, 0, {1, 2}, true), chunk(Request::PUSH, 7, 1, {1, 2}, true),
        chunk(Request::PUSH, 7, 0, {1, 2, 3, 4}, false)}) {
    Worker chief(host, 0);
    REQUIRE(chief.ask(chief.hello(3)));
    REQUIRE(chief.ask(chunk(Request::INITIALIZE, 7, 0, {1, 2, 3}, true)));
    CHECK_FALSE(chief.ask(bad));
    CHECK(chief.reply().message() == "ps 0 (p:1): malformed gradient");
    Worker again(host, 0);
    REQUIRE(again.ask(again.hello(3)));
    CHECK(again.reply().step() == 7);
  }
}

// What the thread sanitizer looks at: gRPC's own threads tell it nothing true, since gRPC's
// libraries are not built for it.
TEST_CASE("Workers in threads of their own make each update together") {
  constexpr int kWorkers = 4, kSteps = 50;
  Host host(options_for(kWorkers), kQuiet);
  Service service(host);
  std::atomic<int> right = 0, left = kWorkers;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Worker worker(host, w);
      bool good = worker.ask(worker.hello(2));
      if (w == 0) {
        Request variables = chunk(Request::INITIALIZE, 0, 0, {100, 200}, true);
        variables.mutable_rules()->set_synchronous(true);
        good = good && worker.ask(variables);
      }
      while (good && worker.reply().session() == 0) {
        std::this_thread::yield();
        good = worker.ask(worker.hello(2));
      }
      for (int step = 0; good && step < kSteps; ++step) {
        // In two chunks. The mean of the workers' gradients is 2.5 for both.
        const float value = static_cast<float>(w + 1);
        good = worker.ask(chunk(Request::PUSH, step, 0, {value}, false)) &&
               worker.ask(chunk(Request::PUSH, step, 1, {value}, true)) &&
               worker.reply().kind() == Reply::VALUES && worker.reply().step() == step + 1;
      }
      const float change = 0.5f * 2.5f * kSteps;
      if (good && values_of(worker.reply()) == std::vector<float>{100 - change, 200 - change})
        ++right;
      --left;
    });
  }
  // Signs of life and the server's own look, meanwhile.
  while (left > 0) {
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      grpc::ServerContext context;
      wire::Presence presence;
      presence.set_worker(w);
      presence.set_process(100 + w);
      wire::Pulse pulse;
      (void)service.Beat(&context, &presence, &pulse);
    }
    const std::lock_guard lock(host.mutex);
    host.notice_losses();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kWorkers);
}

}  // namespace towers::cluster
