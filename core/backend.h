#pragma once
// The seam between the training loop and the devices. A backend compiles a net once, for one batch
// size and precision, into a plan of its own; after that a step allocates nothing.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/net.h"
#include "core/variables.h"

namespace towers {

class CommunicationThread;

enum class Precision { fp32, bf16, fp16, fp64 };
std::string to_string(Precision precision);

// What a batch of training examples is made of.
enum class InputForm {
  images,     // as the net takes them, distorted on the host
  records,    // as the data set has them: the towers distort them
  positions,  // the towers hold the data set as well
};

// A batch of examples in host memory that the backend allocated (Backend::allocate).
struct Batch {
  const float* images = nullptr;         // [size, height, width, channels]; other forms: null
  const std::int32_t* labels = nullptr;  // [size], 0 .. classes - 1; other forms: null
  int size = 0;
  // The other forms, of towers that were given a training set (Towers::make_input). Records:
  // [size][record of the set]; null: those at the position in the towers' own set.
  const std::uint8_t* records = nullptr;
  std::uint64_t position = 0;  // of the first example in the training stream (core/order.h)
};

// Throws Error, which names the image, where a label is not in 0 .. classes - 1. Labels in records
// are checked once, by make_input.
void check_labels(const Batch& batch, int classes);

// CIFAR-10's records, a label and the planes R, G and B of 32 x 32 bytes each, and the seed of the
// stream that is made of them: its order (core/order.h) and distortions (core/distortion.h).
struct TrainingRecords {
  std::span<const std::uint8_t> records;
  std::uint64_t seed = 0;
};

struct CompileOptions {
  int batch_size = 128;  // per tower
  Precision precision = Precision::fp32;
  std::vector<int> device_of_tower{};  // one entry per tower: index into Backend::devices()
  bool deterministic = false;
  std::string convolution = "auto";  // auto, winograd4, winograd2, direct
  // The other processes of the run, each of which compiles the same, with as many towers; null:
  // alone. Towers then step together with theirs: average_gradients waits for them.
  std::shared_ptr<CommunicationThread> ranks{};
};

// Losses of one tower in one step.
struct Losses {
  float cross_entropy = 0;
  std::vector<float> weight_losses;  // of each variable with decay, in the layout's order
  float total = 0;                   // their sum, as TensorFlow's total_loss
};

// The first value that is not finite: "gradient of conv1/weights" of tower 0, or a variable
// (tower -1). `what` is empty where only the loss itself is not finite.
struct NonFinite {
  int tower = -1;
  std::string what;
  std::int64_t good_steps = 0;  // steps since compile that went well before it
};

struct StepReport {
  std::vector<Losses> towers;  // of all ranks, in order; of other ranks after average_gradients
  std::optional<NonFinite> non_finite;
};

// The towers of one run: they share the variables, zeros until write_variables, and step together.
// Calls come from one thread, in the order compute_gradients, average_gradients, apply_gradients;
// the others between steps. All throw Error where a device or another rank fails.
class Towers {
 public:
  virtual ~Towers() = default;

  // From now on batches may come in `form`, which is not images: the devices crop, flip, distort
  // and standardize by themselves, the same examples as data/pipeline.h, values within 1e-5.
  // positions: every device gets a copy of the set, which may go afterwards; false where a device
  // would have too little memory left. A set given before is dropped first. Only where
  // Backend::makes_input(). Throws Error where the net takes other images, or a label is wrong.
  virtual bool make_input(InputForm form, const TrainingRecords& set);

  // Forward and backward of every tower, batches[t] for tower t, each of the compiled size.
  // The batches may be reused once apply_gradients has returned. Throws Error for a label
  // (check_labels), std::invalid_argument for another number or size of batches, or another form
  // than images that make_input was not told.
  // keep_activations: layer outputs of the last tower can be read with `activations` afterwards.
  virtual void compute_gradients(std::span<const Batch> batches, bool keep_activations) = 0;
  // Mean over towers of their gradients (each with its weight decay).
  virtual void average_gradients() = 0;
  // value -= learning_rate * gradient; average -= (1 - average_decay) * (average - value).
  // Variables, averages and gradients are tested for NaN and infinity on the way. From the first
  // such value on, the calls of a step change no variable and no average
  // (an overflow of fp16's scaled gradients leaves out its own update alone).
  virtual void apply_gradients(float learning_rate, float average_decay) = 0;
  // What the last step did; waits for it. All ranks call it at the same times. The first step with
  // a value that is not finite is reported from then on.
  virtual const StepReport& report() = 0;

  // Whether a value that is not finite has been seen; does not wait, so a backend that runs ahead
  // of the host may say so some steps late (good_steps tells which step it was).
  virtual bool diverged() = 0;

  // Flat buffers in the layout of VariableLayout (layout.size() values); padding is written as 0.
  virtual void read_variables(std::span<float> out) = 0;
  virtual void read_moving_averages(std::span<float> out) = 0;
  virtual void read_gradients(std::span<float> out) = 0;  // averaged, of the last step
  virtual void write_variables(std::span<const float> variables,
                               std::span<const float> moving_averages) = 0;
  // Output of the named convolution or dense layer (after its relu) in the last step with
  // keep_activations: [batch_size, height, width, channels] of the last tower of this process.
  // Valid until the next compute_gradients. Throws std::invalid_argument where none were kept.
  virtual std::span<const float> activations(const std::string& layer) = 0;
};

// Forward only, for evaluation and prediction.
class Inference {
 public:
  virtual ~Inference() = default;
  // Flat, in the layout of VariableLayout (layout.size() values).
  virtual void write_variables(std::span<const float> variables) = 0;
  // logits: [batch.size, classes], in float32. batch: images; its labels are not read. Throws
  // std::invalid_argument where batch.size is above the compiled size.
  virtual void logits(const Batch& batch, std::span<float> logits) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  // "CPU, AVX3, 2 threads"
  virtual const std::vector<Device>& devices() const = 0;
  // Zeroed memory for batches: aligned to 64 bytes on the CPU, pinned for GPUs. Throws Error or
  // std::bad_alloc where it is short.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Whether its towers can distort by themselves (Towers::make_input).
  virtual bool makes_input() const { return false; }
  // Why options.precision takes longer here than fp32 would, in a few words; empty where it need
  // not.
  virtual std::string why_slow(const CompileOptions& /*options*/) const { return ""; }
  // Throws Error where the precision or the net is not supported, or memory is short.
  virtual std::unique_ptr<Towers> compile(const Net& net, const CompileOptions& options) = 0;
  // The same. device: index into devices().
  virtual std::unique_ptr<Inference> compile_inference(const Net& net, int batch_size,
                                                       Precision precision, int device) = 0;
};

}  // namespace towers
