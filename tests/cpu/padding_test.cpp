// Images whose padding is that of their neighbours too: each is convolved as if it were alone, and
// nothing beyond the buffer is read.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/spatial_layer.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

constexpr int kKernel = 5, kInputs = 6, kOutputs = 7, kImages = 3;

// Values of all images within a buffer as the layer asks for; NaN behind it.
struct Images {
  Images(const Layout& images_layout, std::mt19937* random)
      : layout(images_layout),
        buffer(layout.buffer_size(kImages) + 65536, std::numeric_limits<float>::quiet_NaN()) {
    std::fill_n(buffer.begin(), layout.buffer_size(kImages), 0.0f);
    std::uniform_real_distribution<float> value(-1, 1);
    if (random == nullptr) return;
    for (int i = 0; i < kImages; ++i)
      for (int y = 0; y < layout.extent.height; ++y)
        for (int x = 0; x < layout.extent.width; ++x)
          for (int c = 0; c < layout.extent.channels; ++c)
            view().of(i).at(y, x)[c] = value(*random);
  }
  View view() { return layout.view(buffer.data(), static_cast<std::ptrdiff_t>(layout.stride())); }
  double at(int image, int y, int x, int c) {
    const Extent& extent = layout.extent;
    if (y < 0 || y >= extent.height || x < 0 || x >= extent.width) return 0;
    return view().of(image).at(y, x)[c];
  }

  Layout layout;
  std::vector<float> buffer;
};

// Of f(y, x) over a kernel's taps.
template <class F>
double sum_over_window(F f) {
  double sum = 0;
  for (int y = 0; y < kKernel; ++y)
    for (int x = 0; x < kKernel; ++x) sum += f(y, x);
  return sum;
}

void check(SimdTarget target, int tile_outputs, int height, int width) {
  CAPTURE(tile_outputs, height, width);
  Net net;
  net.input = {height, width, kInputs};
  net.layers.push_back({"conv", Convolution{kKernel, 1, kOutputs, false}, {}});
  net.layers.push_back({"softmax_linear", Dense{2, false}, {}});
  net.layers.push_back({"softmax", SoftmaxLoss{}, {}});
  net.classes = 2;
  const VariableLayout variables_layout(net);
  const Variable& weights = variables_layout.find("conv/weights");
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> variables(variables_layout.size()), gradients(variables.size());
  for (std::size_t i = 0; i < weights.size; ++i) variables[weights.offset + i] = value(random);
  const auto place_of = [&](int y, int x, int in, int out) {
    return weights.offset +
           static_cast<std::size_t>(((y * kKernel + x) * kInputs + in) * kOutputs + out);
  };
  const auto weight = [&](int y, int x, int in, int out) -> double {
    return variables[place_of(y, x, in, out)];
  };

  const Kernels kernels(target);
  ThreadPool pool(1);
  Memory memory;
  LayerSetting setting;
  setting.kernels = &kernels;
  setting.pool = &pool;
  setting.memory = &memory;
  setting.batch_size = kImages;
  setting.training = setting.wants_input_gradient = true;
  const auto layer =
      make_winograd_conv2d(std::get<Convolution>(net.layers[0].op), net.input, weights,
                           variables_layout.find("conv/biases"),
                           tile_outputs == 2 ? kernels.winograd2 : kernels.winograd4, setting);
  Images in(layer->input_layout(), &random), d_out(layer->output_gradient_layout(), &random);
  Images out(Layout{{height, width, kOutputs}}, nullptr), d_in(Layout{net.input}, nullptr);

  layer->prepare(variables);
  for (int first = 0; first < kImages; first += layer->longest_run()) {
    const Run run{first, std::min(layer->longest_run(), kImages - first), 0};
    layer->forward(in.view().of(first), out.view().of(first), run);
    layer->backward({in.view().of(first), d_out.view().of(first), d_in.view().of(first), gradients,
                     first == 0, first + run.count == kImages},
                    run);
  }

  double wrong_out = 0, wrong_d_in = 0;
  const auto differ = [](double& most, double a, double b) {
    if (!(std::abs(a - b) <= most)) most = std::abs(a - b);  // NaN stays
  };
  for (int i = 0; i < kImages; ++i)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        for (int o = 0; o < kOutputs; ++o)
          differ(wrong_out, out.at(i, y, x, o), sum_over_window([&](int ky, int kx) {
                   double sum = 0;
                   for (int c = 0; c < kInputs; ++c)
                     sum += in.at(i, y + ky - 2, x + kx - 2, c) * weight(ky, kx, c, o);
                   return sum;
                 }));
        for (int c = 0; c < kInputs; ++c)
          differ(wrong_d_in, d_in.at(i, y, x, c), sum_over_window([&](int ky, int kx) {
                   double sum = 0;
                   for (int o = 0; o < kOutputs; ++o)
                     sum += d_out.at(i, y + 2 - ky, x + 2 - kx, o) * weight(ky, kx, c, o);
                   return sum;
                 }));
      }
  CHECK(wrong_out < 1e-3);
  CHECK(wrong_d_in < 1e-3);
  double wrong_weights = 0;
  for (int c = 0; c < kInputs; ++c)
    for (int o = 0; o < kOutputs; ++o) {
      double sum = 0;  // of the kernel's last tap: it reaches furthest beyond the image
      for (int i = 0; i < kImages; ++i)
        for (int y = 0; y < height; ++y)
          for (int x = 0; x < width; ++x) sum += in.at(i, y + 2, x + 2, c) * d_out.at(i, y, x, o);
      differ(wrong_weights, gradients[place_of(kKernel - 1, kKernel - 1, c, o)], sum);
    }
  CHECK(wrong_weights < 1e-2);
}

TEST_CASE("images in one buffer share their padding and nothing else") {
  for_each_target([](SimdTarget target) {
    for (const int tile_outputs : {2, 4})
      for (const auto& [height, width] :
           {std::pair{12, 12}, {13, 11}, {5, 5}, {3, 8}, {9, 14}, {1, 1}})
        check(target, tile_outputs, height, width);
  });
}

}  // namespace
}  // namespace towers::cpu::test
