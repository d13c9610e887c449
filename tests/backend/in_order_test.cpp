// Sums in the order of towers: what a run gives does not depend on how many devices share its
// towers.

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/backend/problem.h"

namespace towers::test {
namespace {

TEST_CASE("with --deterministic four towers give the same bytes on one, two and all devices") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 8);
    const HostBatches parts(backend, problem, 4);
    const std::size_t devices = backend.devices().size();
    std::vector<float> first, averages;
    for (const std::size_t used : {std::size_t{1}, std::min<std::size_t>(2, devices), devices}) {
      INFO(used << " devices");
      CompileOptions options = row.options;
      options.deterministic = true;
      options.batch_size = 2;
      for (std::size_t t = 0; t < 4; ++t)
        options.device_of_tower.push_back(static_cast<int>(t % used));
      const std::unique_ptr<Towers> towers = backend.compile(problem.net, options);
      towers->write_variables(problem.variables, problem.averages);
      for (int s = 0; s < 3; ++s) run_step(*towers, parts.get());
      if (first.empty()) {
        first = variables_of(*towers, problem);
        averages = averages_of(*towers, problem);
      }
      CHECK(variables_of(*towers, problem) == first);
      CHECK(averages_of(*towers, problem) == averages);
    }
  });
}

}  // namespace
}  // namespace towers::test
