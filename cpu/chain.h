#pragma once
// Consecutive spatial layers, run image by image.

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

// Gradients of variables are summed image by image within blocks of images, then over the blocks in
// order. Their number does not depend on threads, so neither do the bytes.
constexpr int kBlocks = 16;

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
  // Memory for images laid out for a layer: all of the batch, or one per worker.
  struct Tensor {
    Layout layout;
    bool whole_batch = false;
    std::size_t stride = 0;  // values from one image to the next
    std::span<float> buffer;

    View view(Place place) const {
      return layout.view(buffer.data() + stride * static_cast<std::size_t>(
                                                      whole_batch ? place.image : place.worker));
    }
  };
  struct Link {
    std::string name;
    std::unique_ptr<SpatialLayer> layer;
    Extent output;
    Tensor in;     // empty for the first layer where it reads the stage's input as it lies
    Tensor d_out;  // likewise for the last layer
    std::span<float> activations;  // of a convolution: [image][height][width][channels]
  };

  Tensor make_tensor(const Layout& layout, bool whole_batch) const;
  ConstView input_of(std::size_t l, const float* in, Place place) const;
  void forward_image(const float* in, float* out, bool keep_activations, Place place);
  void backward_image(const float* in, const float* d_out, float* d_in, std::span<float> partial,
                      bool accumulate, Place place);
  void sum_partials(std::span<const float> variables, std::span<float> gradients);

  LayerSetting setting_;
  Extent input_, output_;
  std::vector<Link> links_;

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
