// A model to tensors and back.

#include "data/model_checkpoint.h"

#include <catch2/catch.hpp>

#include "data/safetensors.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::data {
namespace {

struct Model {
  explicit Model(const Net& net = test::small_net())
      : layout(net), variables(layout.size()), averages(layout.size()) {
    initialize_variables(layout, 1, variables);
    initialize_variables(layout, 2, averages);
  }
  std::vector<Tensor> tensors() const {
    return model_tensors(layout, variables, averages, global_step);
  }
  const VariableLayout layout;
  std::vector<float> variables, averages;
  const float global_step = 100;
};

struct Written {
  explicit Written(const std::vector<Tensor>& tensors) { write_checkpoint(prefix, tensors); }
  const test::TemporaryFolder folder;
  const std::filesystem::path prefix = folder.path() / "model.ckpt-99";
};

// The model's tensors without those that `drop` names.
std::vector<Tensor> without(const Model& model, const std::string& drop) {
  std::vector<Tensor> tensors = model.tensors();
  std::erase_if(tensors, [&](const Tensor& t) { return test::contains(t.name, drop); });
  return tensors;
}

TEST_CASE("The tensors carry TensorFlow's names, types and shapes") {
  const Model model;
  const Written written(model.tensors());
  const CheckpointReader reader(written.prefix);
  std::vector<std::string> names;
  for (const TensorInfo& info : reader.tensors()) {
    names.push_back(info.name);
    CHECK(info.type == DataType::float32);
  }
  const std::string average = "/ExponentialMovingAverage";
  std::vector<std::string> want{"global_step"};
  for (const std::string layer : {"conv1", "local3", "softmax_linear"})
    for (const std::string kind : {"/biases", "/weights"})
      want.insert(want.end(), {layer + kind, layer + kind + average});
  std::sort(want.begin(), want.end());
  CHECK(names == want);
  CHECK(reader.find("conv1/weights")->shape == std::vector<std::int64_t>{3, 3, 2, 4});
  CHECK(reader.find("global_step")->shape.empty());
}

TEST_CASE("Whole numbers are no variable's, in a checkpoint and in safetensors") {
  const Model model;
  std::vector<Tensor> tensors = model.tensors();
  for (Tensor& tensor : tensors)
    if (tensor.name == "conv1/weights") tensor.type = DataType::int32;  // as long as float32
  const Written written(tensors);
  const std::filesystem::path file = written.folder.path() / "a.safetensors";
  write_safetensors(file, tensors, {});
  std::vector<float> variables(model.layout.size());
  const auto complaint = [&](const TensorReader& reader) {
    return test::error_of([&] { restore_variables(reader, model.layout, variables); });
  };
  CHECK(test::contains(complaint(CheckpointReader(written.prefix)),
                       "conv1/weights is of type int32"));
  CHECK(test::contains(complaint(SafetensorsReader(file)), "conv1/weights is of type I32"));
}

TEST_CASE("A model comes back as it was, with clean padding") {
  const Model model;
  const Written written(model.tensors());
  const CheckpointReader reader(written.prefix);
  std::vector<float> variables(model.layout.size(), 7), averages(model.layout.size(), 7);
  restore_variables(reader, model.layout, variables);
  restore_averages(reader, model.layout, averages);
  CHECK(variables == model.variables);
  CHECK(averages == model.averages);
  CHECK(restore_global_step(reader) == 100);
}

TEST_CASE("Missing averages: an error, or the variables in their place") {
  const Model model;
  const Written written(without(model, "ExponentialMovingAverage"));
  const CheckpointReader reader(written.prefix);
  std::vector<float> averages(model.layout.size());
  const std::string message =
      test::error_of([&] { restore_averages(reader, model.layout, averages); });
  CHECK(test::contains(message, "conv1/weights/ExponentialMovingAverage is missing"));
  CHECK(test::contains(message, "and 2 more"));
  restore_averages(reader, model.layout, averages, MissingAverages::use_variables);
  CHECK(averages == model.variables);
}

TEST_CASE("What does not fit is listed with both shapes") {
  const Model model, wider(test::small_net(4));
  const Written written(without(wider, "conv1/biases"));
  const CheckpointReader reader(written.prefix);
  std::vector<float> variables(model.layout.size(), 7);
  const std::string message =
      test::error_of([&] { restore_variables(reader, model.layout, variables); });
  CHECK(test::contains(message, written.prefix.string() + " does not fit this model: "));
  CHECK(test::contains(message, "conv1/biases is missing"));
  CHECK(test::contains(message, "softmax_linear/weights is [5, 4] where [5, 3] is expected"));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(variables.front() == 7);  // nothing was touched
}

TEST_CASE("As many values in another shape do not fit") {
  const Model model;
  std::vector<Tensor> tensors = model.tensors();
  tensors.front().shape = {3, 3, 4, 2};
  const Written written(tensors);
  std::vector<float> variables(model.layout.size());
  CHECK(test::contains(test::error_of([&] {
                         restore_variables(CheckpointReader(written.prefix), model.layout,
                                           variables);
                       }),
                       "conv1/weights is [3, 3, 4, 2] where [3, 3, 2, 4] is expected"));
}

TEST_CASE("Beyond 2^24, where a float32 skips numbers, the checkpoint's name counts the updates") {
  const float step = 16777217.0f;  // 16777216
  const std::vector<Tensor> tensors{test::float_tensor("global_step", {}, {&step, 1})};
  const test::TemporaryFolder folder;
  for (const auto& [name, updates] :
       {std::pair{"model.ckpt-16777216", 16777217}, std::pair{"model.ckpt-16777215", 16777216},
        std::pair{"model.ckpt-9", 16777216}, std::pair{"model", 16777216},
        std::pair{"model-9223372036854775807", 16777216}}) {
    CAPTURE(name);
    write_checkpoint(folder.path() / name, tensors);
    CHECK(restore_global_step(CheckpointReader(folder.path() / name)) == updates);
  }
}

TEST_CASE("A global_step that lacks or is negative") {
  const Model model;
  const Written lacking(without(model, "global_step"));
  CHECK(
      test::contains(test::error_of([&] { restore_global_step(CheckpointReader(lacking.prefix)); }),
                     "no tensor global_step"));
  const float below = -1;
  const Written negative({test::float_tensor("global_step", {}, {&below, 1})});
  CHECK(test::contains(
      test::error_of([&] { restore_global_step(CheckpointReader(negative.prefix)); }),
      "negative: -1"));
}

}  // namespace
}  // namespace towers::data
