// Several stand-in GPUs, one of which fails.

#include <catch2/catch.hpp>

#include "cuda/backend.h"
#include "tests/backend/problem.h"
#include "tests/backend/under_test.h"
#include "tests/cuda_host/control.h"

namespace towers::test {
namespace {

constexpr std::uint64_t kSchedules = 10;

// What a run of two towers on two GPUs ends with where the second GPU fails before `last` of a
// step.
enum class Call { average, apply, report };
void fail_before(Call last, const cuda_host::Settings& settings, bool deterministic) {
  const Problem problem = draw_problem(net_of_two_buckets(), 2);
  cuda_host::start(settings);
  const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
  const HostBatches batches(*backend, problem, 2);
  BackendUnderTest row;
  row.options.deterministic = deterministic;
  const std::unique_ptr<Towers> towers = compile(row, *backend, problem, 1, 2);
  const auto fail_at = [&](Call call) {
    if (call == last) cuda_host::fail_device(1);
  };
  run_step(*towers, batches.get());
  towers->compute_gradients(batches.get(), false);
  fail_at(Call::average);
  towers->average_gradients();
  fail_at(Call::apply);
  towers->apply_gradients(0.1f, 0.9f);
  fail_at(Call::report);
  towers->report();
}

// The other GPU waits for its gradients, in the call that waits and in the destructor that follows.
TEST_CASE("a GPU that fails ends the run by its name, in every order of events") {
  for (const Call last : {Call::average, Call::apply, Call::report})
    for (const bool deterministic : {false, true})
      for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
        CAPTURE(static_cast<int>(last), deterministic, seed);
        CHECK_THROWS_WITH(
            fail_before(last, {.devices = 2, .seed = seed}, deterministic),
            Catch::Contains(" failed on GPU 1 (stand-in GPU): an illegal memory access"));
        for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
      }
}

}  // namespace
}  // namespace towers::test
