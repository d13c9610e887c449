// Each layer's backward function against differences of its forward function.

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "tests/reference/gradient_check.h"
#include "tests/reference/layers.h"

namespace towers::reference {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void check_convolution(const Convolution& c, Extent in) {
  CAPTURE(c.kernel, c.stride, c.outputs, in.height, in.width, in.channels);
  const std::size_t outputs = static_cast<std::size_t>(c.outputs);
  std::vector<double> x = random_values(in.size(), 1);
  std::vector<double> w =
      random_values(static_cast<std::size_t>(c.kernel * c.kernel * in.channels) * outputs, 2);
  std::vector<double> b = random_values(outputs, 3);
  std::vector<double> y(output_extent(Layer{"", c}, in).size());
  const std::vector<double> dy = random_values(y.size(), 4);
  std::vector<double> dx(x.size(), 7.0), dw(w.size()), db(b.size());
  convolution_backward(c, in, x.data(), w.data(), dy.data(), dx.data(), dw.data(), db.data());
  const auto objective = [&] {
    convolution_forward(c, in, x.data(), w.data(), b.data(), y.data());
    return dot(y, dy);
  };
  check_gradient(x, dx, objective, 12);
  check_gradient(w, dw, objective, 12);
  check_gradient(b, db, objective, 12);
}

TEST_CASE("the gradient of a convolution is that of its output") {
  for (const int kernel : {1, 3, 4, 5})
    for (const int stride : {1, 2, 3})
      for (const Extent in : {Extent{1, 1, 1}, Extent{2, 3, 17}, Extent{7, 5, 3}, Extent{6, 6, 5}})
        for (const int outputs : {1, 5, 17})
          check_convolution({.kernel = kernel, .stride = stride, .outputs = outputs}, in);
}

TEST_CASE("a convolution's window and padding are TensorFlow's") {
  // One channel, all weights different powers of ten: each output spells the taps it saw. Rows 1 2
  // 3, kernel 2: the padding is after the image.
  const Convolution c{.kernel = 2, .stride = 1, .outputs = 1};
  const std::vector<double> x{1, 2, 3, 4}, w{1, 10, 100, 1000}, b{0.5};
  std::vector<double> y(4);
  convolution_forward(c, {2, 2, 1}, x.data(), w.data(), b.data(), y.data());
  CHECK(y == std::vector<double>{4321.5, 402.5, 43.5, 4.5});
}

TEST_CASE("the gradient of a max pool goes to the winners") {
  for (const MaxPool p :
       {MaxPool{3, 2}, MaxPool{2, 2}, MaxPool{3, 1}, MaxPool{5, 3}, MaxPool{1, 1}})
    for (const Extent in : {Extent{1, 1, 3}, Extent{2, 3, 1}, Extent{7, 5, 3}, Extent{6, 6, 17}}) {
      CAPTURE(p.size, p.stride, in.height, in.width, in.channels);
      // All different by more than the step, so that no difference crosses a kink.
      std::vector<double> x(in.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01 * static_cast<double>(i);
      std::shuffle(x.begin(), x.end(), std::mt19937(5));
      std::vector<double> y(output_extent(Layer{"", p}, in).size());
      std::vector<std::int32_t> winner(y.size());
      const std::vector<double> dy = random_values(y.size(), 6);
      std::vector<double> dx(x.size(), 7.0);
      max_pool_winners(p, in, x.data(), winner.data());
      scatter_add(y.size(), winner.data(), dy.data(), x.size(), dx.data());
      check_gradient(x, dx, [&] {
        max_pool_winners(p, in, x.data(), winner.data());
        gather(y.size(), winner.data(), x.data(), y.data());
        return dot(y, dy);
      });
    }
}

TEST_CASE("of equal values the first in row-major order wins a pool") {
  const std::vector<double> x{1, 3, 3, 3};
  std::vector<std::int32_t> winner(1);
  max_pool_winners({2, 2}, {2, 2, 1}, x.data(), winner.data());
  CHECK(winner[0] == 1);
}

TEST_CASE("negative values win a pool over padding") {
  const std::vector<double> x{-3, -2, -1};
  std::vector<std::int32_t> winner(2);
  max_pool_winners({3, 2}, {1, 3, 1}, x.data(), winner.data());
  CHECK(winner == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("the gradient of the local response norm is that of its output") {
  for (const int radius : {0, 1, 4})
    for (const double beta : {0.5, 0.75, 1.0, 1.3})
      for (const Extent in :
           {Extent{1, 1, 1}, Extent{2, 3, 3}, Extent{1, 2, 5}, Extent{3, 1, 17}}) {
        const LocalResponseNorm n{.depth_radius = radius, .bias = 1.5, .alpha = 0.3, .beta = beta};
        CAPTURE(radius, beta, in.channels);
        std::vector<double> x = random_values(in.size(), 8);
        std::vector<double> y(x.size()), dx(x.size(), 7.0);
        const std::vector<double> dy = random_values(y.size(), 9);
        local_response_norm_backward(n, in, x.data(), dy.data(), dx.data());
        check_gradient(x, dx, [&] {
          local_response_norm_forward(n, in, x.data(), y.data());
          return dot(y, dy);
        });
      }
}

TEST_CASE("the gradient of a dense layer is that of its output") {
  for (const std::size_t inputs : {1u, 5u, 17u})
    for (const std::size_t outputs : {1u, 3u, 17u}) {
      std::vector<double> x = random_values(inputs, 10);
      std::vector<double> w = random_values(inputs * outputs, 11);
      std::vector<double> b = random_values(outputs, 12);
      const std::vector<double> dy = random_values(outputs, 13);
      std::vector<double> y(outputs), dx(inputs, 7.0), dw(w.size()), db(outputs);
      dense_backward(inputs, outputs, x.data(), w.data(), dy.data(), dx.data(), dw.data(),
                     db.data());
      const auto objective = [&] {
        dense_forward(inputs, outputs, x.data(), w.data(), b.data(), y.data());
        return dot(y, dy);
      };
      check_gradient(x, dx, objective);
      check_gradient(w, dw, objective);
      check_gradient(b, db, objective);
    }
}

TEST_CASE("the gradient of the softmax loss is that of the loss") {
  for (const int classes : {1, 2, 10}) {
    std::vector<double> logits = random_values(static_cast<std::size_t>(classes), 14);
    std::vector<double> gradient(logits.size()), ignored(logits.size());
    for (int label = 0; label < classes; ++label) {
      softmax_cross_entropy(classes, logits.data(), label, gradient.data());
      check_gradient(logits, gradient, [&] {
        return softmax_cross_entropy(classes, logits.data(), label, ignored.data());
      });
    }
  }
}

TEST_CASE("large logits do not overflow the softmax loss") {
  const std::vector<double> logits{1e4, 0, -1e4};
  std::vector<double> gradient(3);
  CHECK(softmax_cross_entropy(3, logits.data(), 1, gradient.data()) == 1e4);
  CHECK(gradient == std::vector<double>{1, -1, 0});
}

}  // namespace
}  // namespace towers::reference
