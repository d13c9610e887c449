// What holds between towers, and between calls of one.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/backend/problem.h"
#include "tests/reference/compare.h"

namespace towers::test {
namespace {

using reference::doubles;

TEST_CASE("towers of a part each do what one tower does with the whole") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    for (const int count : {2, 3, 4}) {
      INFO(count << " towers");
      const Problem problem = draw_problem(reduced_cifar10_net(), 12);
      const std::unique_ptr<Towers> one = compile(row, backend, problem, 12);
      const std::unique_ptr<Towers> many = compile(row, backend, problem, 12 / count, count);
      const HostBatches whole(backend, problem, 1), parts(backend, problem, count);
      // In bf16 the gradient of a mean over other numbers of images rounds otherwise, and from the
      // second step on so do the variables, with decisions that flip.
      const bool rounds = row.options.precision == Precision::bf16;
      const int steps = rounds ? 1 : 3;
      const double tolerance = rounds ? row.golden_tolerance : row.tolerance;
      for (int s = 0; s < steps; ++s) {
        run_step(*one, whole.get());
        run_step(*many, parts.get());
        const Losses expected = one->report().towers.at(0);
        const std::vector<Losses> losses = many->report().towers;
        REQUIRE(losses.size() == static_cast<std::size_t>(count));
        double mean = 0;
        for (const Losses& l : losses) {
          mean += double{l.cross_entropy} / count;
          CHECK(reference::relative_error(l.weight_losses, expected.weight_losses) <=
                row.tolerance);
        }
        CHECK(mean == Approx(expected.cross_entropy).epsilon(row.tolerance));
        check_flat(problem, "gradient", gradients_of(*many, problem),
                   doubles(gradients_of(*one, problem)), tolerance);
      }
      check_flat(problem, "value", variables_of(*many, problem),
                 doubles(variables_of(*one, problem)), tolerance);
      check_flat(problem, "average", averages_of(*many, problem),
                 doubles(averages_of(*one, problem)), tolerance);
    }
  });
}

TEST_CASE("each tower reports its own losses, and the last one's activations are kept") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 6);
    const std::unique_ptr<Towers> two = compile(row, backend, problem, 3, 2);
    const std::unique_ptr<Towers> alone = compile(row, backend, problem, 3);
    const HostBatches parts(backend, problem, 2);
    two->compute_gradients(parts.get(), true);
    for (std::size_t t = 0; t < 2; ++t) {
      alone->compute_gradients({&parts.get()[t], 1}, true);
      CHECK(two->report().towers.at(t).total ==
            Approx(alone->report().towers.at(0).total).epsilon(row.tolerance));
    }
    CHECK(two->report().towers[0].total != two->report().towers[1].total);
    for (const char* layer : {"conv1", "conv2", "local3", "local4", "softmax_linear"}) {
      INFO(layer);
      CHECK(reference::relative_error(two->activations(layer), alone->activations(layer)) <=
            row.tolerance);
    }
  });
}

TEST_CASE("keeping activations changes no number") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 5);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 5);
    const HostBatch host(backend, problem);
    std::vector<float> gradients[2];
    for (const bool keep : {false, true}) {
      towers->compute_gradients({&host.get(), 1}, keep);
      towers->average_gradients();
      gradients[keep] = gradients_of(*towers, problem);
    }
    check_flat(problem, "gradient", gradients[1], doubles(gradients[0]), row.tolerance);
  });
}

TEST_CASE("a batch may be overwritten once the step has been reported") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 4);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 4);
    HostBatch host(backend, problem);
    towers->compute_gradients({&host.get(), 1}, false);
    towers->average_gradients();
    const std::vector<float> expected = gradients_of(*towers, problem);
    towers->compute_gradients({&host.get(), 1}, false);
    REQUIRE(towers->report().towers.size() == 1);
    std::fill_n(host.images(), problem.images.size(), NAN);
    towers->average_gradients();
    check_flat(problem, "gradient", gradients_of(*towers, problem), doubles(expected),
               row.tolerance);
  });
}

TEST_CASE("variables and averages come back as they were written") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 2);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1, 2);
    CHECK(variables_of(*towers, problem) == problem.variables);
    CHECK(averages_of(*towers, problem) == problem.averages);
    run_step(*towers, HostBatches(backend, problem, 2).get());
    CHECK(variables_of(*towers, problem) != problem.variables);
    towers->write_variables(problem.averages, problem.variables);  // again, after a step
    CHECK(variables_of(*towers, problem) == problem.averages);
    CHECK(averages_of(*towers, problem) == problem.variables);
  });
}

TEST_CASE("a step after writing variables is the step of a run that starts there") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    BackendUnderTest deterministic = row;
    deterministic.options.deterministic = true;
    Problem problem = draw_problem(reduced_cifar10_net(), 4);
    const HostBatches parts(backend, problem, 2);
    const std::unique_ptr<Towers> through = compile(deterministic, backend, problem, 2, 2);
    for (int s = 0; s < 2; ++s) run_step(*through, parts.get());
    problem.variables = variables_of(*through, problem);
    problem.averages = averages_of(*through, problem);
    const std::unique_ptr<Towers> resumed = compile(deterministic, backend, problem, 2, 2);
    for (int s = 0; s < 2; ++s) {
      run_step(*through, parts.get());
      run_step(*resumed, parts.get());
    }
    check_flat(problem, "value", variables_of(*resumed, problem),
               doubles(variables_of(*through, problem)), row.tolerance);
    if (!row.resumes_exactly) return;
    CHECK(variables_of(*through, problem) == variables_of(*resumed, problem));
    CHECK(averages_of(*through, problem) == averages_of(*resumed, problem));
  });
}

TEST_CASE("inference gives the logits of training, for batches up to the compiled size") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 7);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 7);
    const HostBatch host(backend, problem);
    towers->compute_gradients({&host.get(), 1}, true);
    const std::span<const float> expected = towers->activations("softmax_linear");
    for (int device = 0; device < static_cast<int>(backend.devices().size()); ++device) {
      const std::unique_ptr<Inference> inference =
          backend.compile_inference(problem.net, 7, row.options.precision, device);
      inference->write_variables(problem.variables);
      for (const int size : {7, 1, 4, 7}) {
        CAPTURE(device, size);
        Batch batch = host.get();
        batch.size = size;
        std::vector<float> logits(static_cast<std::size_t>(size) * 10, NAN);
        inference->logits(batch, logits);
        CHECK(reference::relative_error(logits, expected.first(logits.size())) <= row.tolerance);
      }
    }
  });
}

TEST_CASE("new variables reach inference") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    Problem problem = draw_problem(reduced_cifar10_net(), 2);
    const HostBatch host(backend, problem);
    const std::unique_ptr<Inference> inference =
        backend.compile_inference(problem.net, 2, row.options.precision, 0);
    std::vector<float> before(20), after(20);
    inference->write_variables(problem.variables);
    inference->logits(host.get(), before);
    for (float& v :
         view(std::span<float>(problem.variables), problem.layout.find("softmax_linear/biases")))
      v += 1;
    inference->write_variables(problem.variables);
    inference->logits(host.get(), after);
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(after[i] - before[i] == Approx(1).epsilon(1e-4));
  });
}

}  // namespace
}  // namespace towers::test
