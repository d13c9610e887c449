#pragma once
// Consecutive spatial layers, run a few images at a time.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/net.h"
#include "core/variables.h"
#include "cpu/memory.h"
#include "cpu/spatial_layer.h"
#include "cpu/stage.h"

namespace towers::cpu {

// Gradients of variables are summed run by run within blocks of images, then over the blocks in
// order. Neither runs nor blocks depend on the number of threads, so neither do the bytes.
// No more threads than blocks work on the backward pass. What is done once a block takes as long
// as about two images, so large batches have blocks of 8, small ones of 4.
constexpr int blocks_of(int batch_size) {
  return std::clamp(batch_size / 4, 1, std::clamp(batch_size / 8, 16, 64));
}

class Chain final : public Stage {
 public:
  // Layers [begin, end) of `net`. setting.gradient_origin and relu_input are those of the first
  // layer.
  Chain(const Net& net, const VariableLayout& layout, std::size_t begin, std::size_t end,
        LayerSetting setting);

  void prepare(std::span<const float> variables) override;
  void forward(const float* in, float* out, int images, bool keep_activations) override;
  void backward(const float* in, const float* d_out, float* d_in, std::span<const float> variables,
                std::span<float> gradients) override;
  const float* activations(const std::string& layer) const override;

 private:
  // Memory for images laid out for a layer: all of the batch, or some per worker.
  struct Tensor {
    Layout layout;
    int per_worker = 0;      // 0: all of the batch
    std::size_t stride = 0;  // values from one image to the next; 0: no memory
    std::span<float> buffer;

    // `whole` is the run that the chain is on, `run` all of it or one of its images.
    View view(const Run& run, const Run& whole) const;
  };
  struct Link {
    std::string name;
    std::unique_ptr<SpatialLayer> layer;
    Extent output;
    Tensor in;     // empty for the first layer where it reads the stage's input as it lies
    Tensor d_out;  // likewise for the last layer
    std::span<float> activations;  // of a convolution: [image][height][width][channels]
  };

  // Layers [begin, end), all of which take one image at a time or one of which takes a whole run.
  struct Section {
    std::size_t begin, end;
    int longest_run;
  };
  struct ForwardPass {
    const float* in;
    float* out;
    bool keep_activations;
  };
  struct BackwardPass {
    const float* in;
    const float* d_out;
    float* d_in;
    std::span<float> partial;
    bool begins, ends;
  };

  Tensor make_tensor(const Layout& layout, int per_worker) const;
  void lay_out(std::size_t l);
  ConstView input_of(std::size_t l, const float* in, const Run& run, const Run& whole) const;
  void forward_run(const ForwardPass& pass, const Run& whole);
  void forward_layer(std::size_t l, const ForwardPass& pass, const Run& run, const Run& whole);
  void backward_run(const BackwardPass& pass, const Run& whole);
  void backward_layer(std::size_t l, const BackwardPass& pass, const Run& run, const Run& whole);
  void sum_partials(std::span<const float> variables, std::span<float> gradients);

  LayerSetting setting_;
  std::size_t first_layer_;  // index into Net::layers
  Extent input_, output_;
  std::vector<Link> links_;
  std::vector<Section> sections_;
  int longest_run_ = 1;

  struct Piece {             // of one variable's gradient
    std::size_t begin, end;  // in the layout
    float decay;
  };
  int blocks_ = 0;
  std::size_t partial_size_ = 0;
  std::span<float> partials_;  // [block][partial_size]
  std::vector<Piece> pieces_;
};

}  // namespace towers::cpu
