// What the module asks of NCCL, and what becomes of communicators and groups where something fails.
// Neither a GPU nor NCCL is here: DeviceGuard and Stream are the test's own.

#include "cuda/all_reduce.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/cuda/fake_nccl.h"

namespace towers::cuda {
namespace {

int g_device = 0;
int g_lost_device = -1;
int g_uses_until_lost = 0;

}  // namespace

DeviceGuard::DeviceGuard(int device) : former_(g_device) {
  if (device == g_lost_device && g_uses_until_lost-- == 0) throw Error("the GPU is lost");
  g_device = device;
}
DeviceGuard::~DeviceGuard() {
  g_device = former_;
}
Stream::Stream(int device) : device_(device) {}
Stream::~Stream() = default;

namespace {

constexpr int kGpus = 3;

std::unique_ptr<AllReduce<float>> join() {
  return make_all_reduce<float>({0, 1, 2}, {.id = make_group_id(), .gpus = kGpus, .first = 0});
}

void start() {
  fake_nccl = FakeNccl();
  g_lost_device = -1;
  g_uses_until_lost = 0;
}

void sum(AllReduce<float>& all_reduce) {
  const std::vector<const float*> send(kGpus);
  const std::vector<float*> receive(kGpus);
  Stream stream(0);
  const std::vector<Stream*> streams(kGpus, &stream);
  all_reduce.sum(send, receive, 5, streams);
}

TEST_CASE("GPUs are joined and sum in groups, and their communicators go in the end") {
  start();
  {
    const auto all_reduce = join();
    CHECK(fake_nccl.joined == kGpus);
    sum(*all_reduce);
    CHECK(fake_nccl.sums == kGpus);
    CHECK_NOTHROW(all_reduce->check());
  }
  CHECK(fake_nccl.destroyed == kGpus);
  CHECK(fake_nccl.aborted == 0);
  CHECK(fake_nccl.open_groups == 0);
  CHECK(fake_nccl.calls_outside == 0);
}

TEST_CASE("a GPU that cannot be used is told before any other waits for it") {
  start();
  g_lost_device = 2;
  CHECK_THROWS_WITH(join(), "the GPU is lost");
  CHECK(fake_nccl.joined == 0);
  CHECK(fake_nccl.open_groups == 0);
}

TEST_CASE("a GPU that is lost while all are joined leaves no group open and no communicator") {
  start();
  g_lost_device = 1;
  g_uses_until_lost = 1;
  CHECK_THROWS_WITH(join(), "the GPU is lost");
  CHECK(fake_nccl.joined == 1);
  CHECK(fake_nccl.aborted == 1);
  CHECK(fake_nccl.open_groups == 0);
  g_lost_device = -1;
  CHECK_NOTHROW(join());
}

TEST_CASE("GPUs that NCCL cannot join are an error that says how to learn more") {
  start();
  fake_nccl.failing_call = 2;
  CHECK_THROWS_WITH(
      join(), "NCCL: the GPUs could not be joined: what NCCL says; NCCL_DEBUG=INFO tells more");
  CHECK(fake_nccl.joined == 2);
  CHECK(fake_nccl.aborted == 1);
  CHECK(fake_nccl.open_groups == 0);
}

TEST_CASE("a sum that fails ends all that is under way, and there is no other") {
  start();
  const auto all_reduce = join();
  fake_nccl.failing_call = 2;
  CHECK_THROWS_WITH(sum(*all_reduce), Catch::StartsWith("NCCL: gradients could not be exchanged"));
  CHECK(fake_nccl.aborted == kGpus);
  CHECK(fake_nccl.open_groups == 0);
  CHECK_THROWS_WITH(sum(*all_reduce), "NCCL: an earlier exchange of gradients failed");
  CHECK_THROWS_AS(all_reduce->check(), Error);
}

TEST_CASE("a sum that fails on the way is found by asking") {
  start();
  {
    const auto all_reduce = join();
    fake_nccl.async_error = ncclInProgress;
    CHECK_NOTHROW(all_reduce->check());
    fake_nccl.async_error = ncclRemoteError;
    CHECK_THROWS_WITH(all_reduce->check(), Catch::Contains("what NCCL says"));
    CHECK(fake_nccl.aborted == kGpus);
  }
  CHECK(fake_nccl.destroyed == 0);
}

}  // namespace
}  // namespace towers::cuda
