// How much arithmetic is executed, against counts made by hand.

#include "cpu/executed_operations.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/models/cifar10.h"
#include "cpu/chain.h"
#include "cpu/winograd_matrices.h"

using namespace towers;
using cpu::folded;
using cpu::Matrix;
using cpu::transform_operations;

namespace {

std::vector<LayerOperations> executed_operations(const Net& net, const std::string& convolution,
                                                 int batch_size,
                                                 Precision precision = Precision::fp32) {
  return cpu::executed_operations(
      net, {.batch_size = batch_size, .precision = precision, .convolution = convolution});
}

}  // namespace

TEST_CASE("a transform's operations are counted as the transforms are written") {
  // Rows 1 0 -1 0, and as pair -a + b, where a and b are shared; last 0 -1 0 1. In one dimension
  // that is 1 for the first, 2 for a = x1, b = x2 * 2 (one product), 1 + ... for the last.
  constexpr Matrix<4, 4> m{{{1, 0, -1, 0}, {0, 3, 2, 0}, {0, -3, 2, 0}, {0, -1, 0, 1}}};
  // first: one difference; pair: two products, a sum, a difference; last: a product by -1, a sum
  STATIC_REQUIRE(transform_operations(m) == (1 + 4 + 2) * 8);
  // y0 = x0 + (x1 + x2), y1 = 2 * (x1 - x2) + x3
  constexpr Matrix<2, 4> back{{{1, 1, 1, 0}, {0, 2, -2, 1}}};
  // sum and difference of the pair, one more sum, a product and a sum
  STATIC_REQUIRE(transform_operations(folded(back)) == (2 + 1 + 2) * 6);
}

TEST_CASE("direct convolution executes what is counted as direct convolution") {
  const Net net = cifar10_net();
  CHECK(sum_of_steps(executed_operations(net, "direct", 128)) ==
        sum_of_steps(layer_operations(net)));
  CHECK_THROWS_AS(executed_operations(net, "abacus", 128), UsageError);
}

TEST_CASE("what is executed goes by the precision too") {
  const Net net = cifar10_net();
  CHECK(sum_of_steps(executed_operations(net, "auto", 128, Precision::fp64)) ==
        sum_of_steps(layer_operations(net)));
  // Emulated, by the algorithm named.
  CHECK(sum_of_steps(executed_operations(net, "winograd4", 128, Precision::bf16)) ==
        sum_of_steps(executed_operations(net, "winograd4", 128)));
}

TEST_CASE("Winograd's transforms execute their products, and some operations around them") {
  const Net net = cifar10_net();
  const std::vector<LayerOperations> direct = layer_operations(net);
  const std::vector<LayerOperations> executed = executed_operations(net, "winograd4", 128);
  REQUIRE(executed.size() == direct.size());
  for (std::size_t l = 0; l < direct.size(); ++l) {
    INFO(net.layers[l].name);
    if (std::holds_alternative<Convolution>(net.layers[l].op)) {
      // 64 products for a tile of 16 outputs, where direct convolution has 25 for each.
      CHECK(executed[l].forward > direct[l].forward * 64 / (16 * 25));
      CHECK(executed[l].backward > direct[l].backward * 64 / (16 * 25));
      CHECK(executed[l].step() < direct[l].step());
    } else {
      CHECK(executed[l].step() == direct[l].step());
    }
  }
  // conv2: the products of 9 tiles of 64 positions of 64 x 64 channels, three times. The tiles of
  // 64 channels are transformed as inputs of each product (of the weights' gradient both operands
  // are images, one of them spread from outputs), and back from two; the kernels there twice a
  // batch, and back once for each block of images.
  using W = cpu::Winograd<4, 5>;
  const double products = 3 * 2.0 * 9 * 64 * 64 * 64;
  const double images =
      9 * 64.0 *
      (3 * transform_operations(W::input()) + transform_operations(cpu::transposed(W::output())) +
       2 * transform_operations(folded(W::output())));
  const double kernels =
      64 * 64 / 128.0 *
      (2 * transform_operations(W::kernel()) +
       cpu::blocks_of(128) * transform_operations(folded(cpu::transposed(W::kernel()))));
  CHECK(executed[3].step() == Approx(products + images + kernels));
  // Larger batches share the weights' transforms among more examples.
  CHECK(executed_operations(net, "winograd4", 1024)[3].step() < executed[3].step());
}

TEST_CASE("a narrow image's columns are transformed once for all tiles that share them") {
  const Net net = cifar10_net();
  using W = cpu::Winograd<4, 5>;
  const LayerOperations executed = executed_operations(net, "winograd4", 128)[0];
  // conv1: 6 rows of 6 tiles, 3 channels to 64. A row of tiles spans 28 columns of pixels; then
  // each tile has 8 rows. A transform in both dimensions is 16 of those in one.
  const double image = 3 * 6 * (28 + 6 * 8) * transform_operations(W::input()) / 16.0;
  const double products = 2.0 * 36 * 64 * 3 * 64;
  const double kernels = 3 * 64 / 128.0;
  CHECK(executed.forward ==
        Approx(products + image + 36 * 64.0 * transform_operations(folded(W::output())) +
               kernels * transform_operations(W::kernel()))
            .epsilon(1e-12));
  CHECK(executed.backward ==
        Approx(products + image + 36 * 64.0 * transform_operations(cpu::transposed(W::output())) +
               kernels * cpu::blocks_of(128) *
                   transform_operations(folded(cpu::transposed(W::kernel()))))
            .epsilon(1e-12));
  // F(2x2, 5x5) transforms each of its 12 by 12 tiles by itself.
  using W2 = cpu::Winograd<2, 5>;
  CHECK(executed_operations(net, "winograd2", 128)[0].forward ==
        Approx(2.0 * 144 * 36 * 3 * 64 +
               144.0 * (3 * transform_operations(W2::input()) +
                        64 * transform_operations(folded(W2::output()))) +
               kernels * transform_operations(W2::kernel()))
            .epsilon(1e-12));
}
