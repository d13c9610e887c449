#include "core/net.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "core/models/cifar10.h"

namespace towers {
namespace {

Net small_net() {
  return {.name = "small",
          .input = {5, 4, 2},
          .classes = 3,
          .layers = {{"conv", Convolution{.kernel = 3, .stride = 2, .outputs = 7}},
                     {"pool", MaxPool{.size = 2, .stride = 2}},
                     {"norm", LocalResponseNorm{}},
                     {"dense", Dense{.outputs = 3}},
                     {"loss", SoftmaxLoss{}}}};
}

}  // namespace

TEST_CASE("The tutorial's net has the tutorial's shapes") {
  const Net net = cifar10_net();
  const std::vector<Extent> expected = {{24, 24, 64}, {12, 12, 64}, {12, 12, 64}, {12, 12, 64},
                                        {12, 12, 64}, {6, 6, 64},   {1, 1, 384},  {1, 1, 192},
                                        {1, 1, 10},   {1, 1, 10}};
  CHECK(output_extents(net) == expected);
  CHECK(net.input == Extent{24, 24, 3});
  CHECK(net.classes == 10);
  const std::vector<std::string> names = {"conv1",          "pool1",        "norm1",  "conv2",
                                          "norm2",          "pool2",        "local3", "local4",
                                          "softmax_linear", "cross_entropy"};
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(net.layers[i].name == names[i]);
}

TEST_CASE("Strides round the extent up, as SAME padding does") {
  const std::vector<Extent> expected = {{3, 2, 7}, {2, 1, 7}, {2, 1, 7}, {1, 1, 3}, {1, 1, 3}};
  CHECK(output_extents(small_net()) == expected);
}

TEST_CASE("SAME padding puts the odd row at the end") {
  CHECK(same_padding_before(24, 5, 1) == 2);
  CHECK(same_padding_before(24, 3, 2) == 0);  // one row, after the last
  CHECK(same_padding_before(25, 3, 2) == 1);  // two rows, one on each side
  CHECK(same_padding_before(24, 4, 1) == 1);  // three rows
  CHECK(same_padding_before(4, 1, 2) == 0);   // a stride beyond the kernel leaves rows out
  CHECK(same_padding_before(1, 5, 1) == 2);
}

TEST_CASE("A net that does not fit together is refused") {
  Net net = small_net();
  SECTION("no layers") {
    net.layers.clear();
  }
  SECTION("no loss") {
    net.layers.pop_back();
  }
  SECTION("a layer after the loss") {
    net.layers.push_back({"late", Dense{.outputs = 3}});
  }
  SECTION("a loss in the middle") {
    net.layers.insert(net.layers.begin(), {"early", SoftmaxLoss{}});
  }
  SECTION("a layer without outputs") {
    net.layers[0].op = Convolution{.kernel = 3, .outputs = 0};
  }
  SECTION("another number of classes") {
    net.classes = 4;
  }
  SECTION("a loss on an image") {
    net.layers.erase(net.layers.begin() + 3);
  }
  CHECK_THROWS_AS(output_extents(net), std::invalid_argument);
}

}  // namespace towers
