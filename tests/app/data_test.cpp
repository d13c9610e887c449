// Data that is not there, or not what it should be, ends in one line that says what to do.

#include <catch2/catch.hpp>

#include "cli/options.h"
#include "data/cifar10_archive.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

ProcessResult train_on(const fs::path& data_dir, const fs::path& folder) {
  return run_towers({"--data_dir=" + data_dir.string(), "--nodownload", "--device=cpu",
                     "--max_steps=1", "--batch_size=8",
                     "--train_dir=" + (folder / "run").string()});
}

// A set of the right sizes whose labels are all 3.
void write_batches(const fs::path& folder) {
  fs::create_directories(folder);
  std::string batch(std::size_t{10000} * 3073, '\x40');
  for (std::size_t i = 0; i < 10000; ++i) batch[i * 3073] = 3;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
    write_file(folder / name, batch);
}

void check_error(const ProcessResult& run, const std::vector<std::string>& parts) {
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(lines_of(run.err).size() == 1);
  for (const std::string& part : parts) CHECK(contains(run.err, part));
}

}  // namespace

TEST_CASE("the default address is the one that has a digest") {
  CHECK(towers::cli::CommonOptions().data_url == towers::data::kCifar10Url);
}

TEST_CASE("flag --nodownload prints the address and the path") {
  TemporaryFolder folder;
  check_error(train_on(folder.path() / "data", folder.path()),
              {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
               (folder.path() / "data").string()});
}

TEST_CASE("the batches folder itself, its parent, and a read-only one are accepted") {
  TemporaryFolder folder;
  const fs::path inner = folder.path() / "data/cifar-10-batches-bin";
  write_batches(inner);
  CHECK(train_on(folder.path() / "data", folder.path()).exit_code == 0);
  fs::permissions(inner, fs::perms::owner_write, fs::perm_options::remove);
  CHECK(train_on(inner, folder.path()).exit_code == 0);
  fs::permissions(inner, fs::perms::owner_write, fs::perm_options::add);
}

TEST_CASE("a damaged data set is named: file, what is wrong, what to do") {
  TemporaryFolder folder;
  const fs::path inner = folder.path() / "data/cifar-10-batches-bin";
  write_batches(inner);
  const fs::path batch = inner / "data_batch_4.bin";
  const std::string whole = read_file(batch);
  SECTION("missing") {
    fs::remove(batch);
    check_error(train_on(folder.path() / "data", folder.path()), {"data_batch_4.bin"});
  }
  SECTION("empty") {
    write_file(batch, "");
    check_error(train_on(folder.path() / "data", folder.path()), {"data_batch_4.bin"});
  }
  SECTION("no multiple of a record") {
    write_file(batch, whole.substr(0, 5000));
    check_error(train_on(folder.path() / "data", folder.path()), {"data_batch_4.bin", "3073"});
  }
  SECTION("a label out of range") {
    std::string bad = whole;
    bad[3073 * 17] = 10;
    write_file(batch, bad);
    check_error(train_on(folder.path() / "data", folder.path()), {"data_batch_4.bin", "17", "10"});
  }
}
