// Extraction: what is taken, what is skipped, how it appears on the disk.

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "archive_builder.h"
#include "data/dataset.h"
#include "tests/support.h"

namespace towers::test {
namespace {

namespace fs = std::filesystem;

struct Extraction {
  TemporaryFolder folder;
  fs::path archive = folder.path() / "archive", out = folder.path() / "out";

  void run(const data::ArchiveSpec& spec, const std::string& bytes) {
    write_file(archive, bytes);
    data::commit_members(data::stage_members(spec, archive, out), out);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(out), fs::directory_iterator()));
  }
};

void require_all_in(const fs::path& folder, const SmallSet& set) {
  for (const data::ArchiveMember& member : set.spec.members)
    REQUIRE(read_file(folder / member.name) == set.content(member.name));
}

}  // namespace

TEST_CASE("A published archive is extracted byte for byte") {
  const SmallSet set;
  Extraction extraction;
  extraction.run(set.spec, set.archive);
  require_all_in(extraction.out, set);
  CHECK(extraction.files() == set.spec.members.size());  // nothing temporary is left
  struct stat status {};
  REQUIRE(::stat((extraction.out / "test_batch.bin").c_str(), &status) == 0);
  CHECK((status.st_mode & 0444) == 0444);  // a data set is shared
}

TEST_CASE("Files larger than every buffer come out whole") {
  const SmallSet set(1'000'003);
  Extraction extraction;
  extraction.run(set.spec, set.archive);
  require_all_in(extraction.out, set);
}

TEST_CASE("The bytes written are told on the way, up to all of them") {
  const SmallSet set(1'000'003);
  TemporaryFolder folder;
  write_file(folder.path() / "archive", set.archive);
  std::vector<std::uint64_t> told;
  data::stage_members(set.spec, folder.path() / "archive", folder.path() / "out",
                      [&](std::uint64_t bytes) { told.push_back(bytes); });
  std::uint64_t total = 0;
  for (const data::ArchiveMember& member : set.spec.members)
    total += set.content(member.name).size();
  REQUIRE(told.size() > set.spec.members.size());
  CHECK(told.back() == total);
  CHECK(std::is_sorted(told.begin(), told.end()));
}

TEST_CASE("An archive without compression is read too") {
  const SmallSet set;
  Extraction extraction;
  extraction.run(set.spec, tar_of(set.members));
  require_all_in(extraction.out, set);
}

TEST_CASE("Several gzip members in a row are one stream") {
  const SmallSet set;
  const std::string tar = tar_of(set.members);
  const std::size_t middle = tar.size() / 2;
  Extraction extraction;
  extraction.run(set.spec, gzip_of(tar.substr(0, middle)) + gzip_of(tar.substr(middle)));
  require_all_in(extraction.out, set);
}

TEST_CASE("Other files and folders are skipped, and ./ before a name means nothing") {
  const SmallSet set;
  std::vector<Member> members = {{"./readme.html", "<html>"},
                                 {"other/", "", Member::Kind::folder},
                                 {"other/test_batch.bin", "not this one"},
                                 {"test_batch.bin", "nor this one"}};
  for (Member member : set.members) {
    member.path = "./" + member.path;
    members.push_back(member);
  }
  Extraction extraction;
  extraction.run(set.spec, gzip_of(tar_of(members)));
  require_all_in(extraction.out, set);
  CHECK(extraction.files() == set.spec.members.size());
}

TEST_CASE("The class names may be missing, the batches may not") {
  const SmallSet set;
  std::vector<Member> members = set.members;
  members.pop_back();  // batches.meta.txt
  Extraction extraction;
  extraction.run(set.spec, gzip_of(tar_of(members)));
  CHECK(extraction.files() == 3);
  members.pop_back();  // test_batch.bin
  Extraction another;
  REQUIRE_THROWS_WITH(another.run(set.spec, gzip_of(tar_of(members))),
                      Catch::Contains("lacks cifar-10-batches-bin/test_batch.bin"));
  CHECK_FALSE(fs::exists(another.out));
}

TEST_CASE("Extraction replaces what lies there, and only when all is right") {
  const SmallSet set;
  Extraction extraction;
  fs::create_directories(extraction.out);
  write_file(extraction.out / "test_batch.bin", "old");
  REQUIRE_THROWS_AS(extraction.run(set.spec, set.archive.substr(0, set.archive.size() - 4)),
                    data::ArchiveError);
  CHECK(read_file(extraction.out / "test_batch.bin") == "old");
  CHECK(extraction.files() == 1);
  extraction.run(set.spec, set.archive);
  require_all_in(extraction.out, set);
}

TEST_CASE("The Python version of the set is named as such") {
  const SmallSet set;
  Extraction extraction;
  REQUIRE_THROWS_WITH(
      extraction.run(set.spec, gzip_of(tar_of({{"cifar-10-batches-py/data_batch_1", "pickle"}}))),
      Catch::Contains("lacks cifar-10-batches-bin/data_batch_1.bin") &&
          Catch::Contains("Python version"));
}

TEST_CASE("A folder that cannot be made, and a file that is not there, are named") {
  const SmallSet set;
  const TemporaryFolder folder;
  write_file(folder.path() / "archive", set.archive);
  write_file(folder.path() / "file", "");
  REQUIRE_THROWS_WITH(
      data::stage_members(set.spec, folder.path() / "archive", folder.path() / "file" / "out"),
      Catch::Contains((folder.path() / "file" / "out").string()) &&
          Catch::Contains("Not a directory"));
  REQUIRE_THROWS_WITH(data::stage_members(set.spec, folder.path() / "none", folder.path() / "out"),
                      Catch::Contains("none") && Catch::Contains("No such file"));
}

TEST_CASE("CIFAR-10's archive has seven files, six of them with 10,000 records") {
  const data::ArchiveSpec& spec = data::cifar10_spec();
  CHECK(spec.members.size() == 7);
  std::uint64_t bytes = 0;
  for (const data::ArchiveMember& member : spec.members)
    if (member.required) bytes += member.bytes;
  CHECK(bytes == 60000ULL * data::kRecordBytes);
  CHECK(spec.file == "cifar-10-binary.tar.gz");
  CHECK(spec.folder == "cifar-10-batches-bin");
}

}  // namespace towers::test
