// Checkpoints: TensorFlow's own bytes, round trips, and damage.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "core/error.h"
#include "core/models/cifar10.h"
#include "core/variables.h"
#include "data/checkpoint.h"
#include "data/file.h"
#include "data/model_checkpoint.h"
#include "data/table.h"
#include "tests/support.h"

using namespace towers;
using namespace towers::data;

TEST_CASE("TensorFlow's checkpoint is read and written again byte for byte") {
  const auto shared = test::shared_dir();
  if (shared.empty()) return test::skip("needs TensorFlow's values in ../shared");
  const auto golden = shared / "golden" / "model.ckpt-1500";
  const CheckpointReader reader(golden);
  const VariableLayout layout(cifar10_net(0.004));
  std::vector<float> variables(layout.size()), averages(layout.size());
  restore_variables(reader, layout, variables);
  restore_averages(reader, layout, averages);
  const float global_step = static_cast<float>(restore_global_step(reader));
  CHECK(global_step == 1501.0f);

  const test::TemporaryFolder folder;
  const auto written = folder.path() / "model.ckpt-1500";
  write_checkpoint(written, model_tensors(layout, variables, averages, global_step));
  for (const std::string suffix : {".index", ".data-00000-of-00001"})
    CHECK((test::read_file(written.string() + suffix) == test::read_file(golden.string() + suffix)));
}
