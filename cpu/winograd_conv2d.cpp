// Convolution by Winograd's transforms: at each of n x n positions a product of matrices over the
// channels of all tiles of a run.

#include <algorithm>

#include "cpu/memory.h"
#include "cpu/prefetch.h"
#include "cpu/spatial_layer.h"

namespace towers::cpu {
namespace {

// Tiles that make the products worth their overhead while a worker's values stay near its core.
constexpr int kTilesPerRun = 36;
// Between positions: keeps those of one tile out of the same cache sets.
constexpr std::ptrdiff_t kGap = 16;
constexpr std::ptrdiff_t kPage = 4096 / sizeof(float);

std::size_t size(std::ptrdiff_t values) {
  return static_cast<std::size_t>(values);
}

class WinogradConv2d final : public SpatialLayer {
 public:
  WinogradConv2d(const Convolution& convolution, const Extent& extent, const Variable& weights,
                 const Variable& biases, const WinogradKernels& kernels,
                 const LayerSetting& setting)
      : convolution_(convolution),
        setting_(setting),
        kernels_(kernels),
        gemm_(setting.kernels->gemm),
        weights_(weights),
        biases_(biases),
        inputs_(extent.channels),
        outputs_(convolution.outputs),
        padded_inputs_(gemm_.padded(inputs_)),
        padded_outputs_(gemm_.padded(outputs_)),
        width_(std::max(padded_inputs_, padded_outputs_)) {
    const int m = kernels.outputs, r = kernels.kernel;
    grid_.rows = (extent.height + m - 1) / m;
    grid_.columns = (extent.width + m - 1) / m;
    grid_.height = extent.height;
    grid_.width = extent.width;
    tiles_per_image_ = grid_.rows * grid_.columns;
    longest_run_ = std::clamp(kTilesPerRun / tiles_per_image_, 1, setting.batch_size);

    // Around the image, zeros as far as the tiles read. The input's gradient is a convolution of
    // the output's with the weights turned round, so it wants those zeros too.
    const int before = same_padding_before(extent.height, r, 1);
    // Those to the right of a row are those to the left of the next one, and those below an image
    // those above the next one: zeros take room in the cache too.
    const auto layout = [&](int channels, int first) {
      const int right = grid_.columns * m + r - 1 - first - extent.width;
      const int bottom = grid_.rows * m + r - 1 - first - extent.height;
      Layout layout{{extent.height, extent.width, channels},
                    first,
                    first,
                    std::max(0, bottom - first),
                    std::max(0, right - first)};
      // Rows a whole number of pages apart would share the same few places of the first-level
      // cache.
      if (layout.row() % kPage == 0) ++layout.right;
      layout.beyond = size(first * (layout.row() + channels));
      return layout;
    };
    input_ = layout(extent.channels, before);
    d_output_ = layout(convolution.outputs, r - 1 - before);

    const std::ptrdiff_t n = kernels.positions(), workers = setting.pool->threads();
    Memory& memory = *setting.memory;
    transformed_weights_ = memory.floats(size(n * matrix(inputs_, padded_outputs_)));
    packed_biases_ = memory.floats(size(padded_outputs_));
    const std::ptrdiff_t tiles = longest_run_ * tiles_per_image_;
    position_ = tiles * width_ + kGap;
    values_size_ = (n + 1) * position_;
    values_ = memory.floats(size(values_size_ * workers));
    if (!setting.training) return;
    spread_position_ = tiles * padded_outputs_ + kGap;
    spread_size_ = n * spread_position_;
    spread_ = memory.floats(size(spread_size_ * workers));
    sums_size_ = n * matrix(inputs_, padded_outputs_);
    sums_ = memory.floats(size(sums_size_ * workers));
    if (!setting.wants_input_gradient) return;
    turned_weights_ = memory.floats(size(n * matrix(outputs_, padded_inputs_)));
    turning_size_ = r * r * kTurnedTogether * inputs_;
    turning_ = memory.floats(size(turning_size_ * workers));
  }

  Layout input_layout() const override { return input_; }
  Layout output_gradient_layout() const override { return d_output_; }
  bool keeps_input() const override { return true; }
  int longest_run() const override { return longest_run_; }

  void prepare(std::span<const float> variables) override {
    const float* weights = variables.data() + weights_.offset;
    std::copy_n(variables.data() + biases_.offset, outputs_, packed_biases_.data());
    const int tasks = count(inputs_, kRowsPerTask);
    const int turned_tasks = turned_weights_.empty() ? 0 : count(outputs_, kTurnedTogether);
    setting_.pool->parallel_for(tasks + turned_tasks, [&](int task, int worker) {
      if (task < tasks)
        transform(weights, task * kRowsPerTask);
      else
        transform_turned(weights, (task - tasks) * kTurnedTogether, worker);
    });
  }

  void forward(ConstView in, View out, Run run) override {
    convolve(in.from(-input_.top, -input_.left), inputs_, transformed_weights_, out, outputs_,
             {packed_biases_.data(), convolution_.relu, {}}, out, run);
  }

  void backward(const RunGradients& x, Run run) override {
    // The input's gradient first: its products leave time to fetch what the weights' begins with.
    if (x.d_in.data != nullptr) {
      Finish finish;
      if (setting_.relu_input) finish.gate = x.in;
      convolve(x.d_out.from(-d_output_.top, -d_output_.left), outputs_, turned_weights_, x.d_in,
               inputs_, finish, x.in, run);
    }
    weight_gradient(x, run);
  }

 private:
  static constexpr std::ptrdiff_t kRowsPerTask = 8, kTurnedTogether = 16;

  static int count(std::ptrdiff_t values, std::ptrdiff_t per_task) {
    return static_cast<int>((values + per_task - 1) / per_task);
  }

  // From one position's matrix to the next one's.
  static std::ptrdiff_t matrix(std::ptrdiff_t rows, std::ptrdiff_t padded_columns) {
    return rows * padded_columns + kGap;
  }

  TileGrid grid(const Run& run, std::ptrdiff_t channels) const {
    TileGrid grid = grid_;
    grid.images = run.count;
    grid.channels = static_cast<int>(channels);
    return grid;
  }
  float* values(const Run& run) const { return values_.data() + values_size_ * run.worker; }

  // Transformed weights as packed matrices with `rows` rows.
  Positions packed(float* data, std::ptrdiff_t rows, std::ptrdiff_t padded_columns) const {
    return {data, matrix(rows, padded_columns), gemm_.panel, gemm_.panel, rows * gemm_.panel};
  }

  void transform(const float* weights, std::ptrdiff_t input) const {
    const std::ptrdiff_t rows = std::min(kRowsPerTask, inputs_ - input);
    Positions out = packed(transformed_weights_.data(), inputs_, padded_outputs_);
    out.data += input * out.tile;
    kernels_.transform_weights({weights + input * outputs_, inputs_ * outputs_, outputs_,
                                static_cast<int>(rows), static_cast<int>(outputs_)},
                               out);
  }

  // As transform, of the weights turned round: rows are outputs, columns inputs.
  void transform_turned(const float* weights, std::ptrdiff_t output, int worker) const {
    const std::ptrdiff_t rows = std::min(kTurnedTogether, outputs_ - output);
    const int window = convolution_.kernel * convolution_.kernel;
    const std::ptrdiff_t step = rows * inputs_;
    float* turned = turning_.data() + turning_size_ * worker;
    for (int k = 0; k < window; ++k)
      for (std::ptrdiff_t i = 0; i < inputs_; ++i) {
        const float* from = weights + (k * inputs_ + i) * outputs_ + output;
        for (std::ptrdiff_t o = 0; o < rows; ++o)
          turned[(window - 1 - k) * step + o * inputs_ + i] = from[o];
      }
    Positions out = packed(turned_weights_.data(), outputs_, padded_inputs_);
    out.data += output * out.tile;
    kernels_.transform_weights(
        {turned, step, inputs_, static_cast<int>(rows), static_cast<int>(inputs_)}, out);
  }

  // `in` begins at the first tile's first value. While products keep the arithmetic busy, the
  // images of `next` come nearer.
  void convolve(ConstView in, std::ptrdiff_t in_channels, std::span<const float> weights, View out,
                std::ptrdiff_t out_channels, const Finish& finish, ConstView next,
                const Run& run) const {
    // The products at a position take the place of the inputs one position before, which have had
    // their turn: half the memory to keep near the core.
    Positions products{values(run), position_, width_, width_, 0};
    Positions inputs = products;
    inputs.data += position_;
    kernels_.transform_image(grid(run, in_channels), in, inputs);
    Gemm g;
    g.a_row = g.c_row = width_;
    g.segment_length = in_channels;
    g.rows = run.count * tiles_per_image_;
    g.columns = gemm_.padded(out_channels);
    for (int p = 0; p < kernels_.positions(); ++p) {
      prefetch_share(next, run.count, p, kernels_.positions());
      g.a = inputs.data + p * position_;
      g.b = weights.data() + p * matrix(in_channels, g.columns);
      g.c = products.data + p * position_;
      gemm_.gemm(g);
    }
    kernels_.transform_back(grid(run, out_channels), products, out, finish);
  }

  void weight_gradient(const RunGradients& x, const Run& run) const {
    const std::ptrdiff_t tiles = run.count * tiles_per_image_;
    const Positions inputs{values(run), position_, width_, width_, 0};
    kernels_.transform_image(grid(run, inputs_), x.in.from(-input_.top, -input_.left), inputs);
    const Positions spread{spread_.data() + spread_size_ * run.worker, spread_position_,
                           gemm_.panel, gemm_.panel, tiles * gemm_.panel};
    kernels_.spread_gradient(grid(run, outputs_), x.d_out, spread);

    Positions sums{sums_.data() + sums_size_ * run.worker, matrix(inputs_, padded_outputs_),
                   padded_outputs_, padded_outputs_, 0};
    Gemm g;
    g.a_row = 1;
    g.a_k = width_;
    g.segment_length = tiles;
    g.c_row = g.start_row = padded_outputs_;
    g.rows = inputs_;
    g.columns = padded_outputs_;
    for (int p = 0; p < kernels_.positions(); ++p) {
      g.a = inputs.data + p * position_;
      g.b = spread.data + p * spread_position_;
      g.c = sums.data + p * sums.position;
      g.start = x.begins ? nullptr : g.c;
      gemm_.gemm(g);
    }
    const auto gradient = [&](const Variable& variable) {
      return x.weights.data() + (variable.offset - setting_.gradient_origin);
    };
    gemm_.column_sums(spread.data + kernels_.position_of_sums() * spread_position_, tiles, outputs_,
                      !x.begins, gradient(biases_));
    if (x.ends)
      kernels_.gather_weights(sums, {gradient(weights_), inputs_ * outputs_, outputs_,
                                     static_cast<int>(inputs_), static_cast<int>(outputs_)});
  }

  Convolution convolution_;
  LayerSetting setting_;
  WinogradKernels kernels_;
  GemmKernels gemm_;
  Variable weights_, biases_;
  std::ptrdiff_t inputs_, outputs_;  // channels
  std::ptrdiff_t padded_inputs_, padded_outputs_, width_;
  TileGrid grid_;
  int tiles_per_image_ = 0, longest_run_ = 1;
  Layout input_, d_output_;
  std::span<float> transformed_weights_, turned_weights_, packed_biases_;
  // Per worker: transformed tiles, their products with d_out, weights on their way.
  std::span<float> values_, spread_, sums_, turning_;
  std::ptrdiff_t position_ = 0, values_size_ = 0;
  std::ptrdiff_t spread_position_ = 0, spread_size_ = 0;
  std::ptrdiff_t sums_size_ = 0, turning_size_ = 0;
};

}  // namespace

std::unique_ptr<SpatialLayer> make_winograd_conv2d(const Convolution& convolution,
                                                   const Extent& input, const Variable& weights,
                                                   const Variable& biases,
                                                   const WinogradKernels& kernels,
                                                   const LayerSetting& setting) {
  return std::make_unique<WinogradConv2d>(convolution, input, weights, biases, kernels, setting);
}

}  // namespace towers::cpu
