// The stand-ins for vendors' libraries: what they wait for and what they refuse.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cuda/all_reduce.h"
#include "cuda/conv2d.h"
#include "cuda/matmul.h"
#include "tests/cuda_host/support.h"
#include "tests/cuda_host/world.h"

namespace towers::cuda_host {
namespace {

using cuda::DeviceMemory;
using cuda::Stream;

__global__ void set(float* out, int count, float value) {
  for (int i = 0; i < count; ++i) out[i] = value + static_cast<float>(i);
}

struct Rank {
  explicit Rank(int device) : memory(device), stream(device) {
    own = memory.allocate<float>(5).data();
    sum = memory.allocate<float>(5).data();
  }
  DeviceMemory memory;
  Stream stream;
  float *own, *sum;
};

// The GPUs of one process.
std::unique_ptr<cuda::AllReduce<float>> join(const std::vector<int>& devices) {
  return cuda::make_all_reduce<float>(
      devices, {.id = cuda::make_group_id(), .gpus = static_cast<int>(devices.size())});
}

// The sums over three ranks, of which each fills its own part on its stream first.
void check_sums(std::uint64_t seed) {
  const Devices devices({.devices = 4, .seed = seed});
  const std::unique_ptr<cuda::AllReduce<float>> all_reduce = join({2, 0, 3});
  Rank a(2), b(0), c(3);
  const std::vector<Stream*> streams{&a.stream, &b.stream, &c.stream};
  float value = 1;
  for (Rank* rank : {&a, &b, &c}) launch(set, 1, 1, rank->stream, rank->own, 5, value *= 10);
  all_reduce->sum(std::vector<const float*>{a.own, b.own, c.own},
                  std::vector<float*>{a.sum, b.own, c.sum}, 5, streams);
  // Its own part may be overwritten by a rank that has the sum: it has been sent.
  launch(set, 1, 1, a.stream, a.own, 5, -1);
  const std::vector<float> want{1110, 1113, 1116, 1119, 1122};
  CHECK(read(c.stream, c.sum, 5) == want);
  CHECK(read(a.stream, a.sum, 5) == want);
  CHECK(read(b.stream, b.own, 5) == want);  // in place
}

TEST_CASE("ranks receive the sum of what all had when all had come") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) check_sums(seed);
}

TEST_CASE("a wait for what never happens is told, not waited for") {
  Devices devices;
  devices.expect_fault("streams wait for each other");
  Stream stream(0);
  {
    const Locked world;
    Work work;
    work.after = std::make_shared<Happening>();
    world->enqueue(*world->stream(stream.get()), std::move(work));
  }
  CHECK_THROWS_WITH(stream.synchronize(), Catch::Contains("timed out"));
}

TEST_CASE("a sum is refused where buffers, streams and ranks do not belong together") {
  const Devices devices({.devices = 2});
  Rank a(0), b(1);
  const std::unique_ptr<cuda::AllReduce<float>> all_reduce = join({0, 1});
  const auto sum = [&](const float* send, std::size_t count, std::vector<Stream*> streams) {
    all_reduce->sum(std::vector<const float*>{send, b.own}, std::vector<float*>{a.sum, b.sum},
                    count, streams);
  };
  sum(a.own, 5, {&a.stream, &b.stream});
  CHECK_THROWS_AS(sum(b.own, 5, {&a.stream, &b.stream}), std::logic_error);
  CHECK_THROWS_AS(sum(a.own, 6, {&a.stream, &b.stream}), std::logic_error);
  CHECK_THROWS_AS(sum(a.sum + 1, 4, {&a.stream, &b.stream}), std::logic_error);
  CHECK_THROWS_AS(sum(a.own, 5, {&b.stream, &a.stream}), std::logic_error);
  CHECK_THROWS_AS(sum(a.own, 5, {&a.stream}), std::logic_error);
  CHECK_THROWS_AS(join({1, 1}), std::logic_error);
  a.stream.synchronize();
  b.stream.synchronize();
}

TEST_CASE("operations check their tensors and spoil their workspace") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  const auto matmul =
      cuda::make_matmul<float, float>({.batch = 2, .inputs = 3, .outputs = 4}, memory, stream);
  float* const x = memory.allocate<float>(6).data();
  float* const w = memory.allocate<float>(12).data();
  float* const b = memory.allocate<float>(4).data();
  float* const y = memory.allocate<float>(8).data();
  void* const workspace = memory.allocate<std::byte>(matmul->workspace()).data();
  std::vector<float> ones(12, 1);
  write(stream, w, ones);
  write(stream, x, {1, 2, 3, 4, 5, 6});
  write(stream, b, {-6, 0, -7, NAN});
  matmul->forward(stream, x, w, b, y, workspace);
  const std::vector<float> got = read(stream, y, 8);
  CHECK(got[0] == 0);
  CHECK(got[1] == 6);
  CHECK(got[2] == 0);
  CHECK(std::isnan(got[3]));
  CHECK(got[4] == 9);
  CHECK(std::isnan(read(stream, static_cast<const float*>(workspace), 1)[0]));

  CHECK_THROWS_WITH(matmul->forward(stream, x + 4, w, b, y, workspace),
                    "dense layer: 24 bytes do not lie in memory of GPU 0");
  CHECK_THROWS_WITH(matmul->forward(stream, x, w, b, y, nullptr), Catch::Contains("do not lie"));
  CHECK_THROWS_WITH(matmul->forward(stream, x, w, b, y, y), Catch::Contains("do not lie"));
  CHECK_THROWS_WITH(
      matmul->forward(stream, x, w, memory.allocate<float>(9).data() + 1, y, workspace),
      "dense layer: memory is not aligned to 16");
  CHECK_THROWS_WITH(matmul->input_gradient(stream, y, w, x, workspace),
                    "dense layer (stand-in): made without an input gradient");
}

TEST_CASE("a dense layer keeps which of its outputs are above zero for the one above it") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  const auto below = cuda::make_matmul<float, float>(
      {.batch = 2, .inputs = 1, .outputs = 4, .training = true}, memory, stream);
  REQUIRE(below->signs() != nullptr);
  CHECK_FALSE(below->passes_input_relu());
  const auto above = cuda::make_matmul<float, float>({.batch = 2,
                                                      .inputs = 4,
                                                      .outputs = 1,
                                                      .relu = false,
                                                      .training = true,
                                                      .wants_input_gradient = true,
                                                      .input_signs = below->signs()},
                                                     memory, stream);
  CHECK(above->signs() == nullptr);
  CHECK(above->passes_input_relu());
  float* const x = memory.allocate<float>(2).data();
  float* const w = memory.allocate<float>(4).data();
  float* const b = memory.allocate<float>(4).data();
  float* const y = memory.allocate<float>(8).data();
  void* const workspace =
      memory.allocate<std::byte>(std::max(below->workspace(), above->workspace())).data();
  write(stream, x, {1, -1});
  write(stream, w, {1, -1, 0, NAN});
  below->forward(stream, x, w, b, y, workspace);
  write(stream, w, {1, 2, 3, 4});
  above->input_gradient(stream, x, w, y, workspace);
  CHECK(read(stream, y, 8) == std::vector<float>{1, 0, 0, 4, 0, -2, 0, -4});
}

TEST_CASE("a convolution's input gradient uses the weights of its last forward pass") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  const auto conv = cuda::make_conv2d<float>(
      {.shape = {.batch = 1, .input = {1, 2, 1}, .output = {1, 2, 1}, .size = 1},
       .relu = false,
       .training = true,
       .wants_input_gradient = true},
      memory, stream);
  float* const values = memory.allocate<float>(64).data();
  void* const workspace = memory.allocate<std::byte>(conv->workspace()).data();
  float *const x = values, *const w = values + 16, *const b = values + 32, *const y = values + 48;
  write(stream, x, {3, 5});
  write(stream, w, {2});
  conv->forward(stream, x, w, b, y, workspace);
  CHECK(read(stream, y, 2) == std::vector<float>{6, 10});
  write(stream, w, {7});
  conv->input_gradient(stream, y, w, x, workspace);
  CHECK(read(stream, x, 2) == std::vector<float>{12, 20});
}

}  // namespace
}  // namespace towers::cuda_host
