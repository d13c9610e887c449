// The state file "checkpoint": what TensorFlow writes, moved folders, odd names, damage.

#include <catch2/catch.hpp>

#include "data/checkpoint.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::data {
namespace {

// A folder with empty files that pass for checkpoints of these names.
struct Folder {
  explicit Folder(const std::vector<std::string>& names) {
    for (const std::string& name : names) test::write_file(path / (name + ".index"), "");
  }
  void state(const std::string& text) const { test::write_file(path / "checkpoint", text); }
  std::string error() const {
    return test::error_of([this] { read_checkpoint_state(path); });
  }
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path();
};

using Paths = std::vector<std::filesystem::path>;

TEST_CASE("No state file: no checkpoint") {
  const Folder folder({});
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest.empty());
  CHECK(state.all.empty());
  CHECK(read_checkpoint_state(folder.path / "nothing").latest.empty());
}

TEST_CASE("The state file is written as TensorFlow writes it") {
  const Folder folder({"model.ckpt-0", "model.ckpt-9"});
  const Paths all{folder.path / "model.ckpt-0", folder.path / "model.ckpt-9"};
  write_checkpoint_state(folder.path, {all.back(), all, {}});
  CHECK(test::read_file(folder.path / "checkpoint") ==
        "model_checkpoint_path: \"model.ckpt-9\"\n"
        "all_model_checkpoint_paths: \"model.ckpt-0\"\n"
        "all_model_checkpoint_paths: \"model.ckpt-9\"\n");
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest == all.back());
  CHECK(state.all == all);
  CHECK(state.warning.empty());
}

TEST_CASE("However the folder is spelled, paths inside it are written relative") {
  const Folder folder({"model.ckpt-9"});
  const auto current = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  write_checkpoint_state(".", {folder.path / "model.ckpt-9", {"./model.ckpt-9"}, {}});
  const std::string text = test::read_file(folder.path / "checkpoint");
  std::filesystem::current_path(current);
  CHECK(text ==
        "model_checkpoint_path: \"model.ckpt-9\"\nall_model_checkpoint_paths: \"model.ckpt-9\"\n");
}

TEST_CASE("A checkpoint elsewhere is written by its absolute path") {
  const Folder folder({}), other({"model.ckpt-9"});
  write_checkpoint_state(folder.path, {other.path / "model.ckpt-9", {}, {}});
  CHECK(read_checkpoint_state(folder.path).latest == other.path / "model.ckpt-9");
}

TEST_CASE("Dead absolute paths are followed by file name, with a warning") {
  const Folder folder({"model.ckpt-99"});
  folder.state(test::read_file(std::filesystem::path(TOWERS_SOURCE_DIR) / "tests" / "golden" /
                               "checkpoints" / "int64_step" / "checkpoint"));
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest == folder.path / "model.ckpt-99");
  CHECK(state.all == Paths{folder.path / "model.ckpt-99"});  // model.ckpt-0 is gone
  CHECK(test::contains(state.warning, "/home/somebody/cifar10_train/model.ckpt-99"));
  CHECK(test::contains(state.warning, (folder.path / "model.ckpt-99").string()));
  CHECK(state.warning.find('\n') == std::string::npos);
}

TEST_CASE("Living absolute paths are followed as they are") {
  const Folder folder({"model.ckpt-9"}), other({"model.ckpt-9"});
  folder.state("model_checkpoint_path: \"" + (other.path / "model.ckpt-9").string() + "\"");
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest == other.path / "model.ckpt-9");
  CHECK(state.warning.empty());
}

TEST_CASE("A latest checkpoint that is gone stays named") {
  const Folder folder({"model.ckpt-1"});
  folder.state(
      "model_checkpoint_path: \"model.ckpt-2\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-2\"\n");
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest == folder.path / "model.ckpt-2");
  CHECK(state.all == Paths{folder.path / "model.ckpt-1"});
}

TEST_CASE("Times and fields of later versions are tolerated, repeated names counted once") {
  const Folder folder({"model.ckpt-1"});
  folder.state(
      "# a comment\n"
      "model_checkpoint_path: 'model.ckpt-1'\n"
      "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
      "all_model_checkpoint_timestamps: 1700000000.25\n"
      "last_preserved_timestamp: 1.7e9\n"
      "some_new_field { x: 1 }\n");
  CHECK(read_checkpoint_state(folder.path).all == Paths{folder.path / "model.ckpt-1"});
}

TEST_CASE("The latest counts as kept where it alone is named") {
  const Folder folder({"model.ckpt-1"});
  folder.state("model_checkpoint_path: \"model.ckpt-1\"\n");
  CHECK(read_checkpoint_state(folder.path).all == Paths{folder.path / "model.ckpt-1"});
}

TEST_CASE("Names with quotes, backslashes, line ends and any byte survive") {
  const std::string name = "it's \"a\" \\ name\n\x01\xff\xc3\xa9";
  const Folder folder({name});
  write_checkpoint_state(folder.path, {folder.path / name, {folder.path / name}, {}});
  const std::string text = test::read_file(folder.path / "checkpoint");
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  const CheckpointState state = read_checkpoint_state(folder.path);
  CHECK(state.latest == folder.path / name);
  CHECK(state.all == Paths{folder.path / name});
}

TEST_CASE("A damaged state file is named, with line and column") {
  const Folder folder({});
  for (const std::string text :
       {"model_checkpoint_path: \"model.ckpt-1\"\nall_model_checkpoint_paths \"x\"\n",
        "model_checkpoint_path: \"model.ckpt-1\"\nall_model_check",
        "\nmodel_checkpoint_path: \"m"}) {
    folder.state(text);
    CHECK(test::contains(folder.error(),
                         (folder.path / "checkpoint").string() + " is damaged (line 2"));
  }
  folder.state("");
  CHECK(test::contains(folder.error(), "no model_checkpoint_path"));
  std::filesystem::remove(folder.path / "checkpoint");
  std::filesystem::create_directory(folder.path / "checkpoint");
  CHECK(test::contains(folder.error(), "not a plain file"));
}

}  // namespace
}  // namespace towers::data
