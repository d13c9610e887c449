// Which algorithm is chosen for a convolution, and which one ran.

#include "cpu/convolution_method.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

using Method = ConvolutionMethod;

TEST_CASE("a method asked for by name is taken where the shape allows it, else direct") {
  for (const Method wish : {Method::direct, Method::winograd2, Method::winograd4}) {
    for (const Extent in : {Extent{1, 1, 1}, Extent{24, 24, 3}, Extent{7, 13, 64}}) {
      CHECK(choose_convolution_method(wish, {.kernel = 5, .stride = 1}, in) == wish);
      for (const Convolution other :
           {Convolution{.kernel = 3, .stride = 1}, Convolution{.kernel = 5, .stride = 2},
            Convolution{.kernel = 6, .stride = 1}})
        CHECK(choose_convolution_method(wish, other, in) == Method::direct);
    }
  }
}

TEST_CASE("of itself the method goes by the image: small ones fill no tile") {
  const auto chosen = [](Extent in) {
    return choose_convolution_method(Method::automatic, {.kernel = 5, .stride = 1}, in);
  };
  CHECK(chosen({24, 24, 3}) == Method::winograd4);
  CHECK(chosen({12, 12, 64}) == Method::winograd4);
  CHECK(chosen({6, 6, 64}) == Method::winograd4);
  CHECK(chosen({2, 2, 64}) == Method::direct);
  CHECK(chosen({1, 9, 64}) == Method::direct);
  CHECK(choose_convolution_method(Method::automatic, {.kernel = 3, .stride = 1}, {24, 24, 3}) ==
        Method::direct);
}

TEST_CASE("methods go by the flag's names") {
  CHECK(parse_convolution_method("auto") == Method::automatic);
  CHECK(parse_convolution_method("direct") == Method::direct);
  CHECK(parse_convolution_method("winograd2") == Method::winograd2);
  CHECK(parse_convolution_method("winograd4") == Method::winograd4);
  CHECK_THROWS_AS(parse_convolution_method("winograd6"), UsageError);
}

// Outputs of a 5 x 5 convolution of a 12 x 12 image that are not finite where `value` is in one
// pixel.
long not_finite(Backend& backend, const std::string& convolution, float value) {
  const Net net{"one convolution",
                {12, 12, 3},
                2,
                {{"conv", Convolution{.kernel = 5, .outputs = 1}, {.weights_stddev = 0.1}},
                 {"logits", Dense{.outputs = 2, .relu = false}, {.weights_stddev = 0.1}},
                 {"loss", SoftmaxLoss{}}}};
  const std::unique_ptr<Towers> towers = compile(backend, net, 1, 1, convolution);
  Batches batches(net, 1, 1);
  batches.images(0)[static_cast<std::size_t>((4 * 12 + 4) * 3 + 1)] = value;
  towers->compute_gradients(batches.get(), true);
  const std::span<const float> out = towers->activations("conv");
  return std::count_if(out.begin(), out.end(), [](float x) { return !std::isfinite(x); });
}

TEST_CASE("the method asked for is the one that runs, on every vector target") {
  for_each_target([](SimdTarget target) {
    const std::unique_ptr<Backend> backend = make_backend({1, 1, hwy::TargetName(target)});
    // A NaN reaches the outputs whose window holds it; by F(4 x 4, 5 x 5) all of the four tiles
    // whose inputs hold it.
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(not_finite(*backend, "direct", nan) == 5 * 5);
    CHECK(not_finite(*backend, "winograd2", nan) == 5 * 5);
    CHECK(not_finite(*backend, "winograd4", nan) == 8 * 8);
    // A large value overflows in Winograd's transforms, which multiply it by 5, and nowhere else.
    CHECK(not_finite(*backend, "direct", 1e38f) == 0);
    CHECK(not_finite(*backend, "winograd2", 1e38f) > 0);
    CHECK(not_finite(*backend, "winograd4", 1e38f) > 0);
  });
}

}  // namespace
}  // namespace towers::cpu::test
