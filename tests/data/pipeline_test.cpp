#include "data/pipeline.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/distortion.h"
#include "core/order.h"
#include "core/philox.h"
#include "tests/data/allocations.h"
#include "tests/data/without_rights.h"
#include "tests/support.h"

namespace towers::data {
namespace {

constexpr std::size_t kValues = std::size_t{3} * kCropPixels;

Dataset noise_dataset(std::size_t size) {
  Dataset dataset;
  dataset.records.resize(size * kRecordBytes);
  for (std::size_t i = 0; i < dataset.records.size(); ++i)
    dataset.records[i] = static_cast<std::uint8_t>(philox(1, Stream{99}, i).word[0]);
  for (std::size_t i = 0; i < size; ++i)
    dataset.records[i * kRecordBytes] = static_cast<std::uint8_t>(i % kClasses);
  return dataset;
}

std::shared_ptr<void> allocate(std::size_t bytes) {
  const std::shared_ptr<void> memory(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

struct Example {
  std::vector<float> image;
  std::int32_t label = -1;
  bool operator==(const Example&) const = default;
};

void append(std::vector<Example>& examples, const Batch& batch) {
  for (int i = 0; i < batch.size; ++i) {
    const float* image = batch.images + static_cast<std::size_t>(i) * kValues;
    examples.push_back({{image, image + kValues}, batch.labels[i]});
  }
}

std::vector<Example> read(const Dataset& dataset, const PipelineOptions& options, int batches) {
  Pipeline pipeline(dataset, options, allocate);
  std::vector<Example> examples;
  for (int k = 0; k < batches; ++k) {
    append(examples, pipeline.next());
    pipeline.release();
  }
  return examples;
}

// The stream by its definition.
std::vector<Example> stream(const Dataset& dataset, std::uint64_t seed, std::uint64_t first,
                            std::size_t count) {
  std::vector<Example> examples;
  for (std::uint64_t position = first; position < first + count; ++position) {
    const auto size = static_cast<std::uint32_t>(dataset.size());
    const std::uint32_t i = epoch_permutation(seed, position / size, size)[position % size];
    Example example{std::vector<float>(kValues), dataset.label(i)};
    distort(dataset.image(i), draw_distortion(seed, position), example.image.data());
    examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace

TEST_CASE("The pipeline delivers the stream in order, with any number of threads") {
  const Dataset dataset = noise_dataset(70);
  const std::vector<Example> expected = stream(dataset, 9, 0, 40 * 16);
  for (const int threads : {0, 1, 2, 3, 8})
    for (const int capacity : {1, 2, 5}) {
      INFO(threads << " threads, capacity " << capacity);
      const PipelineOptions options{
          .batch_size = 16, .capacity = capacity, .threads = threads, .seed = 9};
      REQUIRE(read(dataset, options, 40) == expected);
    }
}

TEST_CASE("Records and positions are of the examples that images are made of") {
  const Dataset dataset = noise_dataset(70);
  for (const int threads : {0, 1, 3}) {
    PipelineOptions options{
        .batch_size = 16, .capacity = 2, .threads = threads, .seed = 9, .first_position = 60};
    const std::vector<Example> expected = read(dataset, options, 10);
    options.form = InputForm::records;
    Pipeline records(dataset, options, allocate);
    options.form = InputForm::positions;
    Pipeline positions(dataset, options, [](std::size_t) -> std::shared_ptr<void> {
      throw std::logic_error("positions need no memory");
    });
    std::vector<Example> examples;
    for (std::uint64_t k = 0; k < 10; ++k) {
      const Batch batch = records.next(), place = positions.next();
      CHECK(batch.images == nullptr);
      CHECK(batch.position == 60 + 16 * k);
      CHECK(place.position == batch.position);
      CHECK((place.size == 16 && place.images == nullptr && place.records == nullptr));
      for (std::uint64_t i = 0; i < 16; ++i) {
        const std::uint8_t* record = batch.records + i * kRecordBytes;
        Example example{std::vector<float>(kValues), record[0]};
        distort(record + 1, draw_distortion(9, batch.position + i), example.image.data());
        examples.push_back(std::move(example));
      }
      records.release();
      positions.release();
    }
    CHECK(examples == expected);
  }
}

TEST_CASE("A batch may hold several epochs") {
  const Dataset dataset = noise_dataset(5);
  for (const int threads : {0, 1, 8}) {
    const PipelineOptions options{.batch_size = 23, .capacity = 3, .threads = threads, .seed = 9};
    const std::vector<Example> examples = read(dataset, options, 4);
    CHECK(examples == stream(dataset, 9, 0, 4 * 23));
  }
}

TEST_CASE("An epoch holds every example once, and the next one differs") {
  const Dataset dataset = noise_dataset(kClasses);  // so that labels tell the examples apart
  const PipelineOptions options{.batch_size = kClasses, .threads = 2, .seed = 3};
  const std::vector<Example> examples = read(dataset, options, 20);
  std::set<std::vector<std::int32_t>> orders;
  for (std::size_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < kClasses; ++i)
      labels.push_back(examples[epoch * kClasses + i].label);
    CHECK(std::set<std::int32_t>(labels.begin(), labels.end()).size() == kClasses);
    orders.insert(labels);
  }
  CHECK(orders.size() == 20);
}

TEST_CASE("A stream goes on from any position, with another batch size too") {
  const Dataset dataset = noise_dataset(70);
  const std::vector<Example> whole =
      read(dataset, {.batch_size = 16, .threads = 2, .seed = 9}, 30);  // 480 examples
  for (const int threads : {0, 3}) {
    const std::vector<Example> rest = read(
        dataset, {.batch_size = 16, .threads = threads, .seed = 9, .first_position = 11 * 16}, 19);
    CHECK(rest == std::vector<Example>(whole.begin() + 11 * 16, whole.end()));
    const std::vector<Example> other =
        read(dataset, {.batch_size = 40, .threads = threads, .seed = 9, .first_position = 160}, 8);
    CHECK(other == std::vector<Example>(whole.begin() + 160, whole.end()));
  }
}

TEST_CASE("Processes that share a stream take each batch of it once, those of their towers") {
  const Dataset dataset = noise_dataset(70);
  constexpr int kBatch = 3, kSteps = 20, kTowers = 6;
  const std::vector<Example> whole =
      read(dataset, {.batch_size = kBatch, .seed = 9, .first_position = 5}, kSteps * kTowers);
  for (const int own : {1, 2, 3, 6})
    for (int first = 0; first < kTowers; first += own) {
      CAPTURE(own, first);
      const std::vector<Example> part =
          read(dataset,
               {.batch_size = kBatch,
                .capacity = 4,
                .threads = 2,
                .seed = 9,
                .first_position = 5u + static_cast<std::uint64_t>(first * kBatch),
                .turn = own,
                .readers = kTowers / own},
               kSteps * own);
      std::vector<Example> expected;
      for (int step = 0; step < kSteps; ++step) {
        const auto begin = whole.begin() + (step * kTowers + first) * kBatch;
        expected.insert(expected.end(), begin, begin + own * kBatch);
      }
      CHECK(part == expected);
    }
}

TEST_CASE("Another seed gives other examples") {
  const Dataset dataset = noise_dataset(70);
  CHECK(read(dataset, {.batch_size = 16, .seed = 9}, 2) !=
        read(dataset, {.batch_size = 16, .seed = 10}, 2));
}

TEST_CASE("Held batches stay as they are while the threads work ahead") {
  const Dataset dataset = noise_dataset(70);
  const std::vector<Example> expected = stream(dataset, 9, 0, 30 * 8);
  for (const int threads : {0, 1, 3}) {
    Pipeline pipeline(dataset, {.batch_size = 8, .capacity = 4, .threads = threads, .seed = 9},
                      allocate);
    std::vector<Example> examples;
    for (int step = 0; step < 10; ++step) {  // three towers
      const Batch held[] = {pipeline.next(), pipeline.next(), pipeline.next()};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (const Batch& batch : held) {
        CHECK(reinterpret_cast<std::uintptr_t>(batch.images) % 64 == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(batch.labels) % 64 == 0);
        append(examples, batch);
      }
      for (int i = 0; i < 3; ++i) pipeline.release();
    }
    CHECK(examples == expected);
  }
}

TEST_CASE("Holding more batches than there are is an error, not a wait without end") {
  const Dataset dataset = noise_dataset(70);
  for (const int threads : {0, 2}) {
    Pipeline pipeline(dataset, {.batch_size = 8, .capacity = 2, .threads = threads}, allocate);
    CHECK_THROWS_AS(pipeline.release(), std::logic_error);
    pipeline.next();
    pipeline.next();
    CHECK_THROWS_AS(pipeline.next(), std::logic_error);
    pipeline.release();
    CHECK_NOTHROW(pipeline.next());
  }
}

TEST_CASE("A pipeline may be destroyed at any moment") {
  const Dataset dataset = noise_dataset(70);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  for (const int threads : {1, 3}) {
    SECTION("while every slot is full and the threads wait, " + std::to_string(threads)) {
      Pipeline pipeline(dataset, {.batch_size = 4, .capacity = 2, .threads = threads}, allocate);
      pause();
    }
    SECTION("while batches are held, " + std::to_string(threads)) {
      Pipeline pipeline(dataset, {.batch_size = 4, .capacity = 2, .threads = threads}, allocate);
      pipeline.next();
      pipeline.next();
      pause();
    }
    SECTION("while a large batch is being made, " + std::to_string(threads)) {
      Pipeline pipeline(dataset, {.batch_size = 2000, .capacity = 4, .threads = threads}, allocate);
    }
    SECTION("two hundred times, " + std::to_string(threads)) {
      for (int i = 0; i < 200; ++i) {
        Pipeline pipeline(dataset, {.batch_size = 3, .capacity = 3, .threads = threads}, allocate);
        for (int k = 0; k < i % 7; ++k) {
          pipeline.next();
          pipeline.release();
        }
      }
    }
  }
}

TEST_CASE("The time that next() waits is counted") {
  const Dataset dataset = noise_dataset(70);
  Pipeline pipeline(dataset, {.batch_size = 64, .threads = 0}, allocate);
  CHECK(pipeline.seconds_waited() == 0);
  pipeline.next();
  const double once = pipeline.seconds_waited();
  CHECK(once > 0);
  pipeline.next();
  CHECK(pipeline.seconds_waited() > once);
}

TEST_CASE("A pipeline without an example, a batch or a slot is refused") {
  const Dataset dataset = noise_dataset(3);
  CHECK_THROWS_AS(Pipeline(Dataset{}, {}, allocate), std::invalid_argument);
  CHECK_THROWS_AS(Pipeline(dataset, {.batch_size = 0}, allocate), std::invalid_argument);
  CHECK_THROWS_AS(Pipeline(dataset, {.capacity = 0}, allocate), std::invalid_argument);
  CHECK_THROWS_AS(Pipeline(dataset, {.threads = -1}, allocate), std::invalid_argument);
  CHECK_THROWS_AS(Pipeline(dataset, {.turn = 0}, allocate), std::invalid_argument);
  CHECK_THROWS_AS(Pipeline(dataset, {.readers = 0}, allocate), std::invalid_argument);
}

TEST_CASE("Within an epoch nothing is allocated") {
#ifdef TOWERS_SANITIZED
  return test::skip("a sanitizer brings its own operator new");
#endif
  const Dataset dataset = noise_dataset(1000);
  for (const int threads : {0, 2}) {
    Pipeline pipeline(dataset, {.batch_size = 4, .capacity = 2, .threads = threads}, allocate);
    const auto take = [&](int batches) {
      for (int k = 0; k < batches; ++k) {
        pipeline.next();
        pipeline.release();
      }
    };
    take(20);
    const std::uint64_t before = test::allocations();
    take(200);
    CHECK(test::allocations() == before);
  }
}

// What can fail in a thread is the memory for an epoch's order: here that of the second epoch.
TEST_CASE("A failure in a thread comes out of next(), after the batches before it") {
#ifdef TOWERS_SANITIZED
  return test::skip("a sanitizer brings its own operator new");
#endif
  const Dataset dataset = noise_dataset(4000);
  for (const int threads : {0, 1, 3}) {
    INFO(threads << " threads");
    Pipeline pipeline(dataset, {.batch_size = 1000, .capacity = 3, .threads = threads, .seed = 9},
                      allocate);
    pipeline.next();  // the first epoch's order is there
    const test::FailingAllocations failing(4000 * sizeof(std::uint32_t));
    for (int k = 1; k < 4; ++k) {
      pipeline.release();
      CHECK_NOTHROW(pipeline.next());
    }
    pipeline.release();
    CHECK_THROWS_AS(pipeline.next(), std::bad_alloc);
    CHECK_THROWS_AS(pipeline.next(), std::bad_alloc);
  }
}

TEST_CASE("Threads that cannot be started are an error that says what to lower") {
  const Dataset dataset = noise_dataset(70);
  const std::string error = test::error_without_rights([&] {
    const rlimit none{1, 1};
    ::setrlimit(RLIMIT_NPROC, &none);
    Pipeline pipeline(dataset, {.batch_size = 4, .threads = 5}, allocate);
  });
  CHECK_THAT(error, Catch::StartsWith("cannot start input thread 1 of 5 ("));
  CHECK_THAT(error, Catch::Contains("lower --input_threads"));
}

}  // namespace towers::data
