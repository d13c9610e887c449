// Towers of several ranks, which here are threads: the same bytes as in one process.

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "tests/cpu/support.h"
#include "tests/local_ranks.h"

namespace towers::cpu::test {
namespace {

constexpr int kSize = 5;  // of a batch

struct Outcome {
  std::vector<float> values;  // losses, gradients, variables and averages of a few steps
  std::optional<NonFinite> non_finite;
};

// Batches of `towers` towers from number `first` on.
Outcome outcome(const Net& net, const Batches& batches, std::size_t first, int towers, int devices,
                std::shared_ptr<CommunicationThread> ranks) {
  const std::unique_ptr<Backend> backend = make_backend({2, devices, "auto"});
  CompileOptions options;
  options.batch_size = kSize;
  for (int t = 0; t < towers; ++t) options.device_of_tower.push_back(t % devices);
  options.ranks = std::move(ranks);
  const std::unique_ptr<Towers> compiled = backend->compile(net, options);
  const VariableLayout layout(net);
  std::vector<float> flat(layout.size());
  initialize_variables(layout, 1, flat);
  compiled->write_variables(flat, flat);

  Outcome result;
  for (int s = 0; s < 3; ++s) {
    step(*compiled, batches.get().subspan(first, static_cast<std::size_t>(towers)));
    for (const Losses& losses : compiled->report().towers) {
      result.values.push_back(losses.cross_entropy);
      result.values.push_back(losses.total);
    }
  }
  const auto append = [&] { result.values.insert(result.values.end(), flat.begin(), flat.end()); };
  compiled->read_gradients(flat);
  append();
  compiled->read_variables(flat);
  append();
  compiled->read_moving_averages(flat);
  append();
  result.non_finite = compiled->report().non_finite;
  return result;
}

std::vector<Outcome> outcomes(const Net& net, const Batches& batches, int ranks, int towers,
                              int devices = 1) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  towers::test::LocalRanks::run(ranks, [&](const std::shared_ptr<CommunicationThread>& thread) {
    const auto rank = static_cast<std::size_t>(thread->rank());
    all[rank] =
        outcome(net, batches, rank * static_cast<std::size_t>(towers), towers, devices, thread);
  });
  return all;
}

TEST_CASE("the same bytes for any number of ranks") {
  const Net net = small_cifar10_net();
  const Batches batches(net, 6, kSize);
  const Outcome expected = outcome(net, batches, 0, 6, 1, nullptr);
  REQUIRE_FALSE(expected.non_finite);
  for (const int ranks : {1, 2, 3, 6})
    for (const int devices : {1, 2})
      for (const Outcome& found : outcomes(net, batches, ranks, 6 / ranks, devices)) {
        CAPTURE(ranks, devices);
        CHECK(same_bytes(found.values, expected.values));
      }
}

TEST_CASE("more ranks than there are cache lines of variables") {
  const Net net{
      "tiny", {1, 1, 1}, 2, {{"dense", Dense{2, false}, {0.1, 0.1, 0}}, {"loss", SoftmaxLoss{}}}};
  const Batches batches(net, 5, kSize);
  const Outcome expected = outcome(net, batches, 0, 5, 1, nullptr);
  for (const Outcome& found : outcomes(net, batches, 5, 1))
    CHECK(same_bytes(found.values, expected.values));
}

TEST_CASE("a net that ends in spatial layers") {
  const Net net{"conv",
                {1, 1, 3},
                2,
                {{"conv", Convolution{1, 1, 2, false}, {0.1, 0.1, 0.01}}, {"loss", SoftmaxLoss{}}}};
  const Batches batches(net, 4, kSize);
  const Outcome expected = outcome(net, batches, 0, 4, 1, nullptr);
  for (const Outcome& found : outcomes(net, batches, 2, 2))
    CHECK(same_bytes(found.values, expected.values));
}

TEST_CASE("a bad image is its tower's on every rank") {
  const Net net = small_cifar10_net();
  Batches batches(net, 4, kSize);
  batches.images(3)[7] = std::numeric_limits<float>::quiet_NaN();
  for (const Outcome& found : outcomes(net, batches, 2, 2)) {
    REQUIRE(found.non_finite);
    CHECK(found.non_finite->tower == 3);
    CHECK(found.non_finite->what == "gradient of conv1/weights");
    CHECK(found.non_finite->good_steps == 0);
  }
}

}  // namespace
}  // namespace towers::cpu::test
