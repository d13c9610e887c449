// Kernels: the threads of a block and what they may not do.

#include <cmath>
#include <numeric>

#include "tests/cuda_host/support.h"

namespace towers::cuda_host {
namespace {

using cuda::DeviceMemory;
using cuda::Stream;

__global__ void number_threads(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] +=
      static_cast<int>(block * 1000 + thread);
}

TEST_CASE("every thread of every block runs once") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  int* const out = memory.allocate<int>(2 * 3 * 5 * 4 * 3 * 2).data();
  launch(number_threads, dim3(2, 3, 5), dim3(4, 3, 2), stream, out);
  const std::vector<int> numbers = read(stream, out, 720);
  for (int block = 0; block < 30; ++block)
    for (int thread = 0; thread < 24; ++thread)
      CHECK(numbers[static_cast<std::size_t>(block * 24 + thread)] == block * 1000 + thread);
}

__global__ void reverse(float* values, bool with_barrier) {
  __shared__ float tile[256];
  tile[threadIdx.x] = values[blockIdx.x * 256 + threadIdx.x];
  if (with_barrier) __syncthreads();
  values[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}

std::vector<float> reversed(bool with_barrier) {
  DeviceMemory memory(0);
  Stream stream(0);
  float* const values = memory.allocate<float>(1024).data();
  std::vector<float> numbers(1024);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  write(stream, values, numbers);
  launch(reverse, 4, 256, stream, values, with_barrier);
  return read(stream, values, 1024);
}

TEST_CASE("a barrier holds threads up, and its absence shows") {
  const Devices devices;
  const std::vector<float> with = reversed(true), without = reversed(false);
  REQUIRE(with.size() == 1024);
  for (std::size_t i = 0; i < 1024; ++i)
    CHECK(with[i] == static_cast<float>(i / 256 * 256 + 255 - i % 256));
  CHECK(std::any_of(without.begin(), without.end(), [](float v) { return std::isnan(v); }));
}

__global__ void sum_block(const float* values, float* sums) {
  __shared__ float of_warp[32];
  float sum = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(~0u, sum, bits);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    for (unsigned by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

TEST_CASE("warps exchange values") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  float* const values = memory.allocate<float>(3 * 512).data();
  float* const sums = memory.allocate<float>(3).data();
  std::vector<float> numbers(3 * 512);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  write(stream, values, numbers);
  launch(sum_block, 3, 512, stream, static_cast<const float*>(values), sums);
  CHECK(read(stream, sums, 3) == std::vector<float>{130816, 392960, 655104});
}

__global__ void vote(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __ballot_sync(~0u, lane % 3 == 0);
  if (lane < 16) {  // half a warp by itself
    out[32 + lane] = static_cast<unsigned>(__shfl_sync(0xffffu, lane, 5));
    out[48 + lane] = static_cast<unsigned>(__shfl_up_sync(0xffffu, lane, 1, 8));
  }
  const int count = __syncthreads_count(lane % 2);
  out[64 + lane] = static_cast<unsigned>(count + __syncthreads_or(lane == 7));
}

TEST_CASE("votes, halves of warps and counting barriers") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  unsigned* const out = memory.allocate<unsigned>(96).data();
  launch(vote, 1, 32, stream, out);
  const std::vector<unsigned> got = read(stream, out, 96);
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(got[lane] == 0x49249249u);
    CHECK(got[64 + lane] == 17);
  }
  for (unsigned lane = 0; lane < 16; ++lane) {
    CHECK(got[32 + lane] == 5);
    CHECK(got[48 + lane] == (lane % 8 == 0 ? lane : lane - 1));
  }
}

__global__ void half_waits() {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void wait_in_two_lines() {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void lane_stays_away() {
  if (threadIdx.x != 3)
    __syncwarp();
  else
    __syncthreads();
}
__global__ void mask_without_me() {
  __syncwarp(1u);
}

void check_divergence(void (*kernel)(), const char* words) {
  Devices devices;
  devices.expect_fault(words);
  Stream stream(0);
  launch(kernel, 1, 64, stream);
  CHECK_THROWS_WITH(stream.synchronize(), Catch::Contains("illegal memory access"));
}

TEST_CASE("threads that wait where others do not come are an error") {
  check_divergence(half_waits, "divergent __syncthreads: 16 of 64");
  check_divergence(wait_in_two_lines, "divergent __syncthreads: threads of one block are in lines");
  check_divergence(lane_stays_away, "divergent");
  check_divergence(mask_without_me, "a warp mask does not name the thread");
}

__global__ void count_up(unsigned long long* total, unsigned long long* least) {
  atomicAdd(total, 1ull);
  atomicMin(least, 7ull + threadIdx.x);
}

TEST_CASE("atomics") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  const auto values = memory.allocate<unsigned long long>(2);
  write(stream, values.data(), {0ull, ~0ull});
  launch(count_up, 5, 100, stream, &values[0], &values[1]);
  CHECK(read(stream, values.data(), 2) == std::vector<unsigned long long>{500, 7});
}

}  // namespace
}  // namespace towers::cuda_host
