#pragma once
// A plan is a row of stages, each over a whole batch: chains of spatial layers, and dense layers.
// Between stages activations and gradients are contiguous: [image][height][width][channels].

#include <span>
#include <string>

namespace towers::cpu {

// All calls come from the leader of the device's pool.
class Stage {
 public:
  virtual ~Stage() = default;

  // Once per step, before forward.
  virtual void prepare(std::span<const float> variables) = 0;
  // keep_activations: the outputs of layers with variables can be read afterwards.
  virtual void forward(const float* in, float* out, int images, bool keep_activations) = 0;
  // d_out is the loss's gradient at the stage's output before its relu. Writes the gradients of the
  // stage's variables (each with its weight decay) into `gradients`, the whole layout, and that of
  // its input into d_in unless that is null.
  virtual void backward(const float* in, const float* d_out, float* d_in,
                        std::span<const float> variables, std::span<float> gradients) = 0;
  // Output of the named layer, or null where the stage has none of that name.
  virtual const float* activations(const std::string& layer) const = 0;
};

}  // namespace towers::cpu
