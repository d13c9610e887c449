#include "cluster/mpi_collective.h"

// The C++ interface, long gone from the standard, and its library are not wanted.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace towers::cluster {
namespace {

// Errors of MPI end the job, its default: nothing sensible is left to do.
class MpiCollective final : public Collective {
 public:
  MpiCollective() {
    int provided = 0;
    // This thread makes all calls; others exist.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED) {
      MPI_Finalize();
      throw Error("this MPI cannot be used by a program with threads");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    const std::size_t count = static_cast<std::size_t>(ranks_);
    for (Counts* counts : {&sent_, &received_}) {
      counts->sizes.resize(count);
      counts->offsets.resize(count);
    }
  }
  ~MpiCollective() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);  // the standard leaves open whether the call returns
  }

  void all_to_all(const std::byte* send, std::span<const Part> sent, std::byte* receive,
                  std::span<const Part> received) override {
    sent_.set(sent);
    received_.set(received);
    MPI_Request request;
    MPI_Ialltoallv(send, sent_.sizes.data(), sent_.offsets.data(), MPI_BYTE, receive,
                   received_.sizes.data(), received_.offsets.data(), MPI_BYTE, MPI_COMM_WORLD,
                   &request);
    wait(request);
  }

  void all_gather(std::byte* data, std::span<const Part> parts) override {
    received_.set(parts);
    MPI_Request request;
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, received_.sizes.data(),
                    received_.offsets.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
    wait(request);
  }

  void broadcast(std::span<std::byte> data, int from) override {
    MPI_Request request;
    MPI_Ibcast(data.data(), as_count(data.size()), MPI_BYTE, from, MPI_COMM_WORLD, &request);
    wait(request);
  }

 private:
  struct Counts {
    std::vector<int> sizes, offsets;

    void set(std::span<const Part> parts) {
      for (std::size_t r = 0; r < parts.size(); ++r) {
        sizes[r] = as_count(parts[r].size);
        offsets[r] = as_count(parts[r].offset);
      }
    }
  };

  static int as_count(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw std::length_error("more than 2 GB in one call of MPI");
    return static_cast<int>(bytes);
  }

  // MPI's own waiting takes a whole processor from the threads that compute. So this looks now and
  // then while they do, all the time (but for other ranks on this processor) when they wait for
  // it, and now and then again when that goes on for long.
  void wait(MPI_Request& request) {
    using Clock = std::chrono::steady_clock;
    // Waking up costs some microseconds, a collective call takes a few looks.
    constexpr auto kNap = std::chrono::microseconds(150);
    constexpr auto kLong = std::chrono::milliseconds(2);
    Clock::time_point awaited_since{};
    for (int done = 0;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return;
      if (!awaited()) {
        awaited_since = {};
        std::this_thread::sleep_for(kNap);
        continue;
      }
      const Clock::time_point now = Clock::now();
      if (awaited_since == Clock::time_point{}) awaited_since = now;
      if (now - awaited_since < kLong)
        ::sched_yield();
      else
        std::this_thread::sleep_for(kNap);
    }
  }

  int rank_ = 0, ranks_ = 1;
  Counts sent_, received_;
};

}  // namespace

std::unique_ptr<Collective> join_over_mpi() {
  return std::make_unique<MpiCollective>();
}

}  // namespace towers::cluster
