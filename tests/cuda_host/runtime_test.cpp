// The owners of cuda/runtime.h on the stand-in: memory, streams, events and graphs, used well and
// badly.

#include "core/error.h"
#include "tests/cuda_host/support.h"

namespace towers::cuda_host {
namespace {

using cuda::DeviceMemory;
using cuda::Event;
using cuda::Graph;
using cuda::Stream;

__global__ void fill(int* out, int count, int value) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    out[i] = value;
}
__global__ void add(int* out, int value) {
  *out += value;
}
__global__ void multiply(int* out, int value) {
  *out *= value;
}
__global__ void take(const int* from, int* to) {
  *to = *from;
}

TEST_CASE("device memory comes zeroed, aligned and goes") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  for (const std::size_t count : {1u, 63u, 64u, 1025u, 5000u}) {
    const std::span<int> values = memory.allocate<int>(count);
    CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % 256 == 0);
    CHECK(read(stream, values.data(), count) == std::vector<int>(count));
  }
  CHECK(memory.allocate<int>(0).empty());
  DeviceMemory moved(std::move(memory));
}

TEST_CASE("out of memory says what was wanted, what there is and what to lower") {
  const Devices devices({.devices = 2, .memory = 3 << 20});
  DeviceMemory memory(1);
  memory.allocate<char>(1 << 20);
  CHECK_THROWS_WITH(
      memory.allocate<char>(5 << 19),
      "out of memory on GPU 1 (stand-in GPU): 2.5 MiB more wanted, 2.0 MiB of 3.0 MiB free; lower "
      "--batch_size, or run fewer towers on each GPU (--num_gpus)");
  memory.allocate<char>(2 << 20);  // goes on
}

TEST_CASE("what is wrong is told with the call, the device and the reason") {
  const Devices devices;
  CHECK_THROWS_WITH(Stream(1),
                    "cudaSetDevice failed on GPU 1: invalid device ordinal "
                    "(cudaErrorInvalidDevice)");
  CHECK_THROWS_AS(Stream(1), Error);
  CHECK(cudaGetLastError() == cudaSuccess);  // forgotten
}

TEST_CASE("a kernel that leaves its memory is caught") {
  Devices devices;
  const int mistake = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(mistake);
  Stream stream(0);
  auto memory = std::make_unique<DeviceMemory>(0);
  int* const values = memory->allocate<int>(64).data();
  int* at = values;
  int count = 64;
  switch (mistake) {
    case 0:
      count = 65;
      devices.expect_fault("after the end of the allocation of 256 bytes");
      break;
    case 1:
      at = values - 1024;
      devices.expect_fault("before the allocation of 256 bytes");
      break;
    case 2:
      memory.reset();
      devices.expect_fault("in the freed allocation of 256 bytes");
      break;
    case 3:
      at = &count;
      devices.expect_fault("plain host memory");
      break;
    case 4:
      memory.reset(new DeviceMemory(0));  // and with something else in its place
      memory->allocate<int>(64);
      devices.expect_fault("in the freed allocation of 256 bytes");
      break;
  }
  CHECK_THROWS_WITH(
      [&] {
        launch(fill, 1, 32, stream, at, count, 1);
        stream.synchronize();
      }(),
      Catch::Contains("an illegal memory access was encountered (cudaErrorIllegalAddress)"));
}

TEST_CASE("memory goes when what uses it is done") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Devices devices({.seed = seed});
    Stream stream(0);
    const std::shared_ptr<void> pinned = cuda::allocate_pinned(256);
    {
      DeviceMemory memory(0);
      int* const values = memory.allocate<int>(64).data();
      launch(fill, 1, 32, stream, values, 64, 7);
      cuda::copy_to_host(stream, pinned.get(), values, 256);
    }
    CHECK(static_cast<int*>(pinned.get())[63] == 7);
  }
}

TEST_CASE("writing into the rest of a page is noticed when the memory is freed") {
  Devices devices;
  devices.expect_fault("written outside of the allocation of 20 bytes");
  Stream stream(0);
  DeviceMemory memory(0);
  int* const values = memory.allocate<int>(5).data();
  launch(fill, 1, 32, stream, values, 6, 1);
  stream.synchronize();
}

TEST_CASE("a kernel of another device may not touch memory") {
  Devices devices({.devices = 2});
  devices.expect_fault("work of another device touches");
  Stream stream(1);
  DeviceMemory memory(0);
  launch(fill, 1, 32, stream, memory.allocate<int>(8).data(), 8, 1);
  CHECK_THROWS_AS(stream.synchronize(), Error);
}

TEST_CASE("what is left behind or freed twice is told") {
  start({});
  void* memory = nullptr;
  cudaEvent_t event;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  const std::vector<std::string> left = finish();
  REQUIRE(left.size() == 2);
  CHECK_THAT(left[0], Catch::StartsWith("never freed: allocation of 100 bytes"));
  CHECK(left[1] == "1 events never destroyed");
  cudaEventDestroy(event);
  cudaFree(memory);
  CHECK(finish().empty());
  CHECK(cudaFree(memory) != cudaSuccess);
  CHECK_THAT(finish().at(0), Catch::StartsWith("freed twice or never allocated"));
  start({});
}

TEST_CASE("copies are checked to the byte") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0);
  const auto device = memory.allocate<char>(100);
  const std::shared_ptr<void> pinned = cuda::allocate_pinned(100);
  cuda::copy_to_device(stream, device.data(), pinned.get(), 100);
  CHECK_THROWS_AS(cuda::copy_to_device(stream, device.data(), pinned.get(), 101), Error);
  CHECK_THROWS_AS(cuda::copy_to_device(stream, pinned.get(), pinned.get(), 100), Error);
  CHECK_THROWS_AS(cuda::copy_on_device(stream, device.data() + 1, device.data(), 100), Error);
  stream.synchronize();
}

// A value goes host, stream a, stream b, host, with the steps in `mask` that keep it in order.
enum Step : unsigned { device_waits = 1, host_waits_to_reuse = 2, host_waits_to_read = 4 };
int passed_on(std::uint64_t seed, unsigned steps) {
  start({.seed = seed});
  int got = 0;
  {
    DeviceMemory memory(0);
    Stream a(0), b(0);
    Event sent(0), done(0);
    int* const first = memory.allocate<int>(1).data();
    int* const second = memory.allocate<int>(1).data();
    const std::shared_ptr<void> in = cuda::allocate_pinned(4), out = cuda::allocate_pinned(4);
    *static_cast<int*>(in.get()) = 42;
    cuda::copy_to_device(a, first, in.get(), 4);
    sent.record(a);
    if (steps & device_waits) b.wait(sent);
    launch(take, 1, 1, b, static_cast<const int*>(first), second);
    cuda::copy_to_host(b, out.get(), second, 4);
    done.record(b);
    if (steps & host_waits_to_reuse) sent.synchronize();
    *static_cast<int*>(in.get()) = 13;
    if (steps & host_waits_to_read) done.synchronize();
    got = *static_cast<int*>(out.get());
    a.synchronize();
    b.synchronize();
  }
  CHECK(finish().empty());
  return got;
}

TEST_CASE("each event and each wait that is missing shows as a wrong number") {
  const unsigned all = device_waits | host_waits_to_reuse | host_waits_to_read;
  for (const unsigned left_out : {0u, 1u, 2u, 4u}) {
    CAPTURE(left_out);
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) wrong += passed_on(seed, all & ~left_out) != 42;
    if (left_out == 0)
      CHECK(wrong == 0);
    else
      CHECK(wrong >= 10);
  }
}

TEST_CASE("asking whether work is done leaves no error for others to find") {
  const Devices devices;
  Stream stream(0);
  Event event(0);
  DeviceMemory memory(0);
  const std::span<int> value = memory.allocate<int>(1);
  int asked = 0;
  for (int time = 0; time < 20; ++time) {
    cuda::launch(add, 1, 1, stream, value.data(), 1);
    event.record(stream);
    for (; !event.done() || !stream.done(); ++asked) CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(asked > 0);
}

TEST_CASE("a seed decides the order") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const int first = passed_on(seed, 0);
    CHECK(passed_on(seed, 0) == first);
  }
}

TEST_CASE("a graph is recorded, not run, and started as a whole") {
  const Devices devices({.seed = GENERATE(range(0u, 20u))});
  DeviceMemory memory(0);
  Stream stream(0), side(0);
  Event fork(0), join(0);
  int* const value = memory.allocate<int>(1).data();
  int* const other = memory.allocate<int>(1).data();
  Graph graph = Graph::capture(stream, [&] {
    launch(add, 1, 1, stream, value, 1);
    fork.record(stream);
    side.wait(fork);
    launch(add, 1, 1, side, other, 5);
    launch(multiply, 1, 1, stream, value, 3);
    join.record(side);
    stream.wait(join);
    launch(take, 1, 1, stream, static_cast<const int*>(other), value + 0);
  });
  CHECK(read(stream, value, 1)[0] == 0);
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  CHECK(read(stream, value, 1)[0] == 15);
}

TEST_CASE("a kernel of a graph takes other arguments from the graph's next launch on") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Devices devices({.seed = seed});
    DeviceMemory memory(0);
    Stream stream(0);
    int* const value = memory.allocate<int>(1).data();
    Graph graph = Graph::capture(stream, [&] {
      launch(add, 1, 1, stream, value, 1);
      launch(multiply, 1, 1, stream, value, 10);
    });
    CHECK(graph.set_arguments(add, value, 2));
    graph.launch(stream);
    CHECK(graph.set_arguments(add, value, 3));
    Graph moved = std::move(graph);
    moved.launch(stream);
    CHECK(moved.set_arguments(multiply, value, 100));
    moved.launch(stream);
    CHECK_FALSE(moved.set_arguments(fill, value, 1, 1));
    CHECK(read(stream, value, 1)[0] == ((2 * 10 + 3) * 10 + 3) * 100);
  }
}

TEST_CASE("a graph whose kernels CUDA does not tell is known") {
  const Devices devices({.names_kernels = false});
  DeviceMemory memory(0);
  Stream stream(0);
  int* const value = memory.allocate<int>(1).data();
  Graph graph = Graph::capture(stream, [&] { launch(add, 1, 1, stream, value, 1); });
  CHECK_FALSE(graph.set_arguments(add, value, 2));
  graph.launch(stream);
  CHECK(read(stream, value, 1)[0] == 1);
}

TEST_CASE("what may not happen during a capture is refused") {
  const Devices devices;
  DeviceMemory memory(0);
  Stream stream(0), side(0);
  Event event(0), before(0);
  before.record(side);
  int* const value = memory.allocate<int>(1).data();
  const auto refused = [&](const char* words, const std::function<void()>& enqueue) {
    CHECK_THROWS_WITH(Graph::capture(stream, enqueue), Catch::Contains(words));
    launch(add, 1, 1, stream, value, 1);  // the stream is usable again
  };
  refused("not permitted when stream is capturing", [&] { stream.synchronize(); });
  refused("not permitted when stream is capturing", [&] { memory.allocate<int>(1); });
  refused("not permitted when stream is capturing", [&] { cuda::allocate_pinned(1); });
  refused("last recorded in a capturing stream", [&] {
    event.record(stream);
    event.synchronize();
  });
  refused("uncaptured work", [&] { stream.wait(before); });
  refused("unjoined work", [&] {
    event.record(stream);
    side.wait(event);
    launch(add, 1, 1, side, value, 1);
  });
  refused("previous error during capture", [&] { cudaDeviceSynchronize(); });
  int plain = 0;
  refused("not permitted when stream is capturing",
          [&] { cuda::copy_to_device(stream, value, &plain, 4); });
  CHECK(read(stream, value, 1)[0] == 8);
}

TEST_CASE("an error while recording leaves the stream usable") {
  const Devices devices;
  Stream stream(0);
  CHECK_THROWS_WITH(Graph::capture(stream, [] { throw Error("words"); }), "words");
  stream.synchronize();
}

TEST_CASE("the current device is restored") {
  const Devices devices({.devices = 3});
  cudaSetDevice(1);
  {
    const cuda::DeviceGuard outer(2);
    const cuda::DeviceGuard inner(0);
  }
  int device = 0;
  cudaGetDevice(&device);
  CHECK(device == 1);
  cudaSetDevice(0);
}

}  // namespace
}  // namespace towers::cuda_host
