#include "data/dataset.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/data/without_rights.h"
#include "tests/support.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kFileBytes = 10000ull * kRecordBytes;
const std::vector<std::string> kFiles = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

// Full-size files of zeros: they have holes for contents, so they cost no space.
void make_batches(const fs::path& folder) {
  fs::create_directories(folder);
  for (const std::string& name : kFiles) {
    test::write_file(folder / name, "");
    fs::resize_file(folder / name, kFileBytes);
  }
}

void set_byte(const fs::path& file, std::uintmax_t offset, int value) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(offset));
  out.put(static_cast<char>(value));
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string load_error(const fs::path& data_dir, Split split = Split::train) {
  const std::string error = error_of([&] { load_cifar10(data_dir, split); });
  CHECK(error.find('\n') == std::string::npos);
  return error;
}

// data_dir with whole batches in it, one of which a test then spoils.
struct Folder {
  Folder() { make_batches(batches); }
  std::string file(const std::string& name) const { return (batches / name).string(); }
  std::string download() const {
    return "delete " + batches.string() + " and run `towers download --data_dir=" + dir.string() +
           "`";
  }

  test::TemporaryFolder temporary;
  fs::path dir = temporary.path() / "data";
  fs::path batches = dir / "cifar-10-batches-bin";
};

}  // namespace

TEST_CASE("Records come in file order, labels first, planes after") {
  const Folder folder;
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    const fs::path file = folder.batches / kFiles[i];
    set_byte(file, 0, static_cast<int>(i));
    set_byte(file, 1, 100 + static_cast<int>(i));  // the first record's first red value
    set_byte(file, kFileBytes - kRecordBytes, 9);  // the last record's label
    set_byte(file, kFileBytes - 1, 200 + static_cast<int>(i));  // its last blue value
  }
  const Dataset train = load_cifar10(folder.dir, Split::train);
  REQUIRE(train.size() == kTrainExamples);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(train.label(i * 10000) == static_cast<int>(i));
    CHECK(train.image(i * 10000)[0] == 100 + i);
    CHECK(train.label(i * 10000 + 9999) == 9);
    CHECK(train.image(i * 10000 + 9999)[kImageBytes - 1] == 200 + i);
  }
  const Dataset test = load_cifar10(folder.dir, Split::test);
  REQUIRE(test.size() == kTestExamples);
  CHECK(test.label(0) == 5);
  CHECK(test.image(9999)[kImageBytes - 1] == 205);
  CHECK(test.description == "cifar10 from " + folder.batches.string());
}

TEST_CASE("data_dir may be the folder with the batches itself") {
  const Folder folder;
  CHECK(find_batches_folder(folder.dir) == folder.batches);
  CHECK(find_batches_folder(folder.batches) == folder.batches);
  CHECK(load_cifar10(folder.batches, Split::test).size() == kTestExamples);
  CHECK(load_cifar10(folder.batches / "", Split::test).size() == kTestExamples);
}

TEST_CASE("Any one batch is enough to recognize the folder, none is not") {
  const test::TemporaryFolder folder;
  CHECK(find_batches_folder(folder.path()).empty());
  fs::create_directories(folder.path() / "cifar-10-batches-bin");
  CHECK(find_batches_folder(folder.path()).empty());
  test::write_file(folder.path() / "cifar-10-batches-bin" / "test_batch.bin", "");
  CHECK(find_batches_folder(folder.path()) == folder.path() / "cifar-10-batches-bin");
}

TEST_CASE("data_dir one level too high names the one to use") {
  const Folder folder;
  const std::string above = folder.temporary.path().string();
  CHECK(load_error(above) == "data_dir " + above + " holds no cifar-10-batches-bin, but " +
                                 folder.dir.string() +
                                 " holds the data: use --data_dir=" + folder.dir.string());
}

TEST_CASE("data_dir one level too deep names the one to use") {
  const Folder folder;
  const std::string use = " holds the data: use --data_dir=" + folder.batches.string();
  fs::create_directories(folder.batches / "sub");
  const std::string sub = folder.file("sub");
  CHECK(load_error(sub) ==
        "data_dir " + sub + " holds no cifar-10-batches-bin, but " + folder.batches.string() + use);
  const std::string file = folder.file("data_batch_1.bin");
  CHECK(load_error(file) ==
        "data_dir " + file + " is not a folder, but " + folder.batches.string() + use);
}

TEST_CASE("An empty or absent data_dir says how to fill it") {
  const test::TemporaryFolder folder;
  const std::string dir = folder.path().string();
  const std::string remedy = "; run `towers download --data_dir=" + dir +
                             "`, or give the folder that "
                             "holds it with --data_dir";
  CHECK(load_error(dir) == "data_dir " + dir + " holds no cifar-10-batches-bin" + remedy);
  CHECK(load_error(dir + "/no") ==
        "data_dir " + dir + "/no does not exist; run `towers download --data_dir=" + dir +
            "/no`, or give the folder that holds it with --data_dir");
  const std::string empty = dir + "/cifar-10-batches-bin";
  fs::create_directories(empty);
  CHECK(load_error(dir) == empty + " holds no data_batch_1.bin and no test_batch.bin" + remedy);
}

TEST_CASE("Other versions of the data are told by name") {
  const test::TemporaryFolder folder;
  const fs::path dir = folder.path();
  std::string what, inside;
  SECTION("pickle") {
    inside = "cifar-10-batches-py/data_batch_1";
    what = "the Python (pickle) version of CIFAR-10";
  }
  SECTION("Matlab") {
    inside = "cifar-10-batches-mat/data_batch_1.mat";
    what = "the Matlab version of CIFAR-10";
  }
  SECTION("CIFAR-100") {
    inside = "cifar-100-binary/fine_label_names.txt";
    what = "CIFAR-100";
  }
  fs::create_directories((dir / inside).parent_path());
  test::write_file(dir / inside, "x");
  for (const fs::path& given : {dir, (dir / inside).parent_path()})
    CHECK(load_error(given) == "data_dir " + given.string() + " holds " + what +
                                   "; the binary version of CIFAR-10 (cifar-10-batches-bin) is "
                                   "needed: give another --data_dir, where it is or where it may "
                                   "be fetched to");
}

TEST_CASE("Misplaced data are refused before a download, absent ones are not") {
  const Folder folder;
  const auto refusal = [](const fs::path& dir) {
    return error_of([&] { refuse_misplaced_data(dir); });
  };
  CHECK(refusal(folder.dir) == "no error");
  CHECK(refusal(folder.batches) == "no error");
  CHECK_THAT(refusal(folder.temporary.path()),
             Catch::Contains("use --data_dir=" + folder.dir.string()));
  CHECK_THAT(refusal(folder.dir / "new"), Catch::Contains("use --data_dir=" + folder.dir.string()));
  const test::TemporaryFolder empty;
  CHECK(refusal(empty.path()) == "no error");
  CHECK(refusal(empty.path() / "new") == "no error");
  // After a download beside it another version does no harm.
  fs::create_directories(folder.dir / "cifar-10-batches-py");
  CHECK(refusal(folder.dir) == "no error");
}

TEST_CASE("A batch that is missing is named") {
  const Folder folder;
  fs::remove(folder.batches / "data_batch_4.bin");
  const std::string error = folder.file("data_batch_4.bin") + " is missing; ";
  CHECK(load_error(folder.dir) == error + folder.download());
  CHECK(load_error(folder.batches) == error + folder.download());
  CHECK_NOTHROW(load_cifar10(folder.dir, Split::test));
  fs::remove(folder.batches / "test_batch.bin");
  CHECK_THAT(load_error(folder.dir, Split::test), Catch::Contains("test_batch.bin is missing"));
}

TEST_CASE("A file of another length is named with its length and the expected one") {
  const Folder folder;
  const std::string name = "data_batch_2.bin", file = folder.file(name);
  const std::string expected =
      "; expected 30730000 bytes (10000 records of 3073); " + folder.download();
  std::string found;
  std::uintmax_t bytes = 0;
  SECTION("empty") {
    found = " is empty";
  }
  SECTION("one byte") {
    bytes = 1;
    found = " has 1 bytes, no multiple of a record's 3073";
  }
  SECTION("cut within a record") {
    bytes = kFileBytes - 1;
    found = " has 30729999 bytes, no multiple of a record's 3073";
  }
  SECTION("a record less") {
    bytes = kFileBytes - kRecordBytes;
    found = " has 30726927 bytes, 9999 records";
  }
  SECTION("a record more") {
    bytes = kFileBytes + kRecordBytes;
    found = " has 30733073 bytes, 10001 records";
  }
  fs::resize_file(file, bytes);
  CHECK(load_error(folder.dir) == file + found + expected);
}

TEST_CASE("A label out of range is named with file, record and value") {
  const Folder folder;
  set_byte(folder.batches / "data_batch_3.bin", 4321ull * kRecordBytes, 10);
  CHECK(
      load_error(folder.dir) ==
      folder.file("data_batch_3.bin") +
          ": record 4321 (of 0 to 9999) has label 10, expected 0 to 9; the file is damaged or not "
          "CIFAR-10: " +
          folder.download());
  set_byte(folder.batches / "test_batch.bin", 9999ull * kRecordBytes, 255);
  CHECK_THAT(load_error(folder.dir, Split::test),
             Catch::Contains("record 9999 (of 0 to 9999) has label 255"));
}

TEST_CASE("What is no plain file is refused before it is opened") {
  const Folder folder;
  const fs::path file = folder.batches / "data_batch_1.bin";
  fs::remove(file);
  SECTION("a folder") {
    fs::create_directory(file);
  }
  SECTION("a pipe, whose opening would wait for ever") {
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  }
  CHECK(load_error(folder.dir) == file.string() + " is not a regular file; " + folder.download());
}

TEST_CASE("What may not be read says so") {
  const Folder folder;
  fs::permissions(folder.temporary.path(), fs::perms::all);
  const auto error = [&] {
    return test::error_without_rights([&] { load_cifar10(folder.dir, Split::train); });
  };
  REQUIRE(error() == "");
  SECTION("a file") {
    fs::permissions(folder.batches / "data_batch_5.bin", fs::perms::none);
    CHECK(error() == folder.file("data_batch_5.bin") +
                         " cannot be opened: Permission denied; check its permissions");
  }
  for (const auto& [name, permissions] :
       {std::pair{"closed", fs::perms::none},
        {"with visible names", fs::perms::owner_read | fs::perms::others_read}}) {
    SECTION(std::string("the batches folder, ") + name) {
      fs::permissions(folder.batches, permissions);
      const std::string got = error();
      fs::permissions(folder.batches, fs::perms::owner_all);
      CHECK(got == folder.batches.string() +
                       " cannot be read: Permission denied; check the permissions of it and of the "
                       "folders above it");
    }
    SECTION(std::string("data_dir, ") + name) {
      fs::permissions(folder.dir, permissions);
      const std::string got = error();
      fs::permissions(folder.dir, fs::perms::owner_all);
      CHECK(got == folder.dir.string() +
                       " cannot be read: Permission denied; check the permissions of it and of the "
                       "folders above it");
    }
  }
  SECTION("read-only data are enough") {
    for (const std::string& name : kFiles)
      fs::permissions(folder.batches / name, fs::perms::others_read | fs::perms::owner_read);
    fs::permissions(folder.batches, fs::perms::others_read | fs::perms::others_exec |
                                        fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(error() == "");
    fs::permissions(folder.batches, fs::perms::owner_all);
  }
}

TEST_CASE("Classes have CIFAR-10's names") {
  CHECK(class_names().front() == std::string("airplane"));
  CHECK(class_names()[6] == std::string("frog"));
  CHECK(class_names().back() == std::string("truck"));
}

}  // namespace towers::data
