#pragma once
// Ranks that are threads of this process.

#include <barrier>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/collective.h"
#include "core/communication_thread.h"

namespace towers::test {

class LocalRanks {
 public:
  explicit LocalRanks(int ranks) : barrier_(ranks), calls_(static_cast<std::size_t>(ranks)) {}

  // body(rank) on a thread for each rank; throws what one of them threw.
  static void run(int ranks,
                  const std::function<void(const std::shared_ptr<CommunicationThread>&)>& body) {
    LocalRanks all(ranks);
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> exceptions(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        try {
          body(std::make_shared<CommunicationThread>(
              [&all, r] { return std::make_unique<Rank>(all, r); }));
        } catch (...) {
          exceptions[static_cast<std::size_t>(r)] = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& exception : exceptions)
      if (exception) std::rethrow_exception(exception);
  }

 private:
  struct Call {  // of one rank
    const std::byte* data = nullptr;
    std::span<const Collective::Part> parts;
  };

  class Rank final : public Collective {
   public:
    Rank(LocalRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int ranks() const override { return static_cast<int>(all_.calls_.size()); }
    void abort(int) override { std::terminate(); }

    void all_to_all(const std::byte* send, std::span<const Part> sent, std::byte* receive,
                    std::span<const Part> received) override {
      exchange(send, sent, [&](std::size_t r, const Call& call) {
        const Part from = call.parts[static_cast<std::size_t>(rank_)];
        if (from.size != received[r].size) std::terminate();
        copy(call.data + from.offset, receive + received[r].offset, from.size);
      });
    }
    void all_gather(std::byte* data, std::span<const Part> parts) override {
      exchange(data, parts, [&](std::size_t r, const Call& call) {
        if (call.parts[r].size != parts[r].size) std::terminate();
        if (r != static_cast<std::size_t>(rank_))
          copy(call.data + call.parts[r].offset, data + parts[r].offset, parts[r].size);
      });
    }
    void broadcast(std::span<std::byte> data, int from) override {
      exchange(data.data(), {}, [&](std::size_t r, const Call& call) {
        if (static_cast<int>(r) == from && rank_ != from) copy(call.data, data.data(), data.size());
      });
    }

   private:
    static void copy(const std::byte* from, std::byte* to, std::size_t size) {
      if (size > 0) std::memcpy(to, from, size);
    }
    template <class Take>
    void exchange(const std::byte* data, std::span<const Part> parts, Take take) {
      all_.calls_[static_cast<std::size_t>(rank_)] = {data, parts};
      all_.barrier_.arrive_and_wait();
      for (std::size_t r = 0; r < all_.calls_.size(); ++r) take(r, all_.calls_[r]);
      all_.barrier_.arrive_and_wait();
    }

    LocalRanks& all_;
    int rank_;
  };

  std::barrier<> barrier_;
  std::vector<Call> calls_;
};

}  // namespace towers::test
