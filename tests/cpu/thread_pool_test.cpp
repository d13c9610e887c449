#include "cpu/thread_pool.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpu/available_threads.h"
#include "tests/data/without_rights.h"

namespace towers::cpu::test {
namespace {

TEST_CASE("every task runs once, on a worker of the pool, for any number of threads") {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (const int tasks : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      std::atomic<int> faults{0};
      pool.run([&] {
        pool.parallel_for(tasks, [&](int task, int worker) {
          if (worker < 0 || worker >= threads) {
            ++faults;
            return;
          }
          // No two tasks share a worker, and so its scratch memory, at a time.
          if (busy[static_cast<std::size_t>(worker)]++ != 0) ++faults;
          ++runs[static_cast<std::size_t>(task)];
          --busy[static_cast<std::size_t>(worker)];
        });
      });
      CHECK(faults == 0);
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("each thread is kept on the processor that it was given") {
  std::vector<int> processors = allowed_processors();
  std::reverse(processors.begin(), processors.end());
  processors.resize(std::min<std::size_t>(processors.size(), 4));
  const int threads = static_cast<int>(processors.size());
  ThreadPool pool(threads, "pinned", processors);
  std::vector<int> seen(processors.size(), -1);
  std::atomic<int> here{0};
  pool.run([&] {
    pool.parallel_for(threads, [&](int, int worker) {
      seen[static_cast<std::size_t>(worker)] = ::sched_getcpu();
      // Until all have come, or one thread could take two tasks.
      ++here;
      while (here < threads) std::this_thread::yield();
    });
  });
  CHECK(seen == processors);
  const std::vector<int> none{1 << 20};
  CHECK_THROWS_WITH(ThreadPool(1, "pinned", none), Catch::Contains("leave --pin_threads out"));
}

TEST_CASE("hundreds of short rounds end, each after the last") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    long sum = 0;
    pool.run([&] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<long> in_round{0};
        pool.parallel_for(5, [&](int task, int) { in_round += task; });
        sum += in_round;
      }
    });
    CHECK(sum == 5000);
  }
}

TEST_CASE("threads that have gone to sleep wake up") {
  ThreadPool pool(4);
  std::atomic<int> runs{0};
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pool.parallel_for(8, [&](int, int) { ++runs; });
    });
  }
  CHECK(runs == 40);
}

TEST_CASE("what a task throws comes out of wait, and the pool goes on") {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      CHECK_THROWS_WITH(pool.run([&] {
        pool.parallel_for(50, [&](int task, int) {
          if (task == 13) throw std::runtime_error("task 13");
        });
      }),
                        "task 13");
      std::atomic<int> runs{0};
      pool.run([&] { pool.parallel_for(10, [&](int, int) { ++runs; }); });
      CHECK(runs == 10);
    }
  }
}

TEST_CASE("what a job throws comes out of wait") {
  ThreadPool pool(2);
  auto bad = [] { throw std::out_of_range("job"); };
  pool.start(bad);
  CHECK_THROWS_AS(pool.wait(), std::out_of_range);
  bool ran = false;
  auto good = [&] { ran = true; };
  pool.start(good);
  pool.wait();
  CHECK(ran);
}

TEST_CASE("jobs of several pools run at the same time") {
  ThreadPool first(1), second(1);
  std::atomic<int> arrived{0};
  auto job = [&] {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  };
  first.start(job);
  second.start(job);
  first.wait();
  second.wait();
  CHECK(arrived == 2);
}

TEST_CASE("all threads of a pool flush denormal numbers") {
  ThreadPool pool(3);
  std::atomic<int> kept{0};
  pool.run([&] {
    pool.parallel_for(64, [&](int, int) {
      volatile float smallest = std::numeric_limits<float>::min();
      const volatile float half = smallest * 0.5f;
      if (half != 0) ++kept;
    });
  });
  CHECK(kept == 0);
  volatile float smallest = std::numeric_limits<float>::min();
  CHECK(smallest * 0.5f != 0);  // and the calling thread does not
}

TEST_CASE("the calling thread leads a job that runs, and flushes denormals meanwhile") {
  ThreadPool pool(3);
  volatile float smallest = std::numeric_limits<float>::min();
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id leader;
  std::atomic<int> tasks{0};
  bool flushed = false;
  pool.run([&] {
    leader = std::this_thread::get_id();
    flushed = smallest * 0.5f == 0;
    pool.parallel_for(64, [&](int, int worker) {
      if (worker != 0 || std::this_thread::get_id() == here) ++tasks;
    });
  });
  CHECK(leader == here);
  CHECK(flushed);
  CHECK(tasks == 64);
  CHECK(smallest * 0.5f != 0);
  CHECK_THROWS_AS(pool.run([] { throw std::out_of_range("job"); }), std::out_of_range);
  CHECK(smallest * 0.5f != 0);
  // One that is started has the other leader.
  auto started = [&] { leader = std::this_thread::get_id(); };
  pool.start(started);
  pool.wait();
  CHECK(leader != here);
}

TEST_CASE("threads that cannot be started are an error that says what to lower") {
  const std::string error = towers::test::error_without_rights([] {
    const rlimit none{1, 1};
    ::setrlimit(RLIMIT_NPROC, &none);
    ThreadPool pool(5);
  });
  CHECK_THAT(error, Catch::StartsWith("cannot start 5 compute threads ("));
  CHECK_THAT(error, Catch::EndsWith(kFewerThreads));
}

}  // namespace
}  // namespace towers::cpu::test
