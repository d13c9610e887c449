// Archives that are damaged, or made to do harm: refused, named, and nothing of them on the disk.

#include <catch2/catch.hpp>

#include "archive_builder.h"
#include "tests/support.h"

namespace towers::test {
namespace {

namespace fs = std::filesystem;

// The error that extracting `bytes` ends with; the disk must be as before.
std::string refusal(const data::ArchiveSpec& spec, const std::string& bytes) {
  const TemporaryFolder folder;
  const fs::path archive = folder.path() / "archive", out = folder.path() / "inside" / "out";
  write_file(archive, bytes);
  std::string message = "no error";
  try {
    data::stage_members(spec, archive, out);
  } catch (const data::ArchiveError& error) {
    message = error.what();
    CHECK(message.starts_with(archive.string()));
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK_FALSE(fs::exists(out));
  CHECK_THROWS_AS(data::check_archive(spec, archive), data::ArchiveError);
  return message;
}

// The set's archive with one more member, first or last.
std::string archive_with(const SmallSet& set, const Member& extra, bool first) {
  std::vector<Member> members = set.members;
  members.insert(first ? members.begin() : members.end(), extra);
  return gzip_of(tar_of(members));
}

}  // namespace

TEST_CASE("Paths that lead out of the folder are refused") {
  const SmallSet set;
  for (const bool first : {true, false}) {
    for (const char* path :
         {"/tmp/towers-evil", "../evil", "cifar-10-batches-bin/../../evil", "a/.."}) {
      CAPTURE(path, first);
      CHECK_THAT(refusal(set.spec, archive_with(set, {path, "x"}, first)),
                 Catch::Contains("refused") && Catch::Contains(path));
    }
  }
}

TEST_CASE("Links, devices and pipes are refused, needed or not") {
  const SmallSet set;
  using Kind = Member::Kind;
  for (const char* path : {"cifar-10-batches-bin/test_batch.bin", "other"}) {
    for (const Kind kind : {Kind::symbolic_link, Kind::hard_link, Kind::device, Kind::fifo}) {
      CAPTURE(path, static_cast<int>(kind));
      CHECK_THAT(refusal(set.spec, archive_with(set, {path, "/etc/passwd", kind}, true)),
                 Catch::Contains("refused") && Catch::Contains(path));
    }
  }
}

TEST_CASE("A batch that is a folder is refused") {
  const SmallSet set;
  const Member folder{"cifar-10-batches-bin/test_batch.bin/", "", Member::Kind::folder};
  CHECK_THAT(refusal(set.spec, gzip_of(tar_of({folder}))), Catch::Contains("is a folder"));
}

TEST_CASE("A member with another size is refused before it is read") {
  const SmallSet set;
  for (const long off : {-1L, 1L}) {
    std::vector<Member> members = set.members;
    Member& batch = members[2];
    batch.content.resize(batch.content.size() + static_cast<std::size_t>(off));
    CHECK_THAT(refusal(set.spec, gzip_of(tar_of(members))),
               Catch::Contains(batch.path) && Catch::Contains("instead of 60000"));
  }
  CHECK_THAT(
      refusal(set.spec,
              archive_with(set, {"cifar-10-batches-bin/batches.meta.txt", std::string(101, 'x')},
                           true)),
      Catch::Contains("101 bytes instead of 100"));
}

TEST_CASE("A decompression bomb ends early, wherever it lies") {
  const SmallSet set(1000);
  const std::string zeros(70 << 20, '\0');
  CHECK_THAT(refusal(set.spec, archive_with(set, {"bomb", zeros}, true)),
             Catch::Contains("far more than the set") && Catch::Contains("bomb"));
  // Behind the end of the tar archive, where nobody looks.
  CHECK_THAT(refusal(set.spec, gzip_of(tar_of(set.members) + zeros)),
             Catch::Contains("endless padding"));
}

TEST_CASE("A member that is there twice is refused") {
  const SmallSet set;
  const Member again{"cifar-10-batches-bin/data_batch_1.bin", set.content("data_batch_1.bin")};
  CHECK_THAT(refusal(set.spec, archive_with(set, again, false)),
             Catch::Contains("data_batch_1.bin is there twice"));
}

TEST_CASE("An archive that was cut anywhere is noticed, and known to be cut") {
  const SmallSet set(5000);
  const std::size_t size = set.archive.size();
  // Within the gzip header, the members, the padding, the checksum.
  for (const std::size_t kept :
       {std::size_t{2}, std::size_t{11}, size / 3, size - 40, size - 8, size - 1}) {
    CAPTURE(kept);
    CHECK_THAT(refusal(set.spec, set.archive.substr(0, kept)), Catch::Contains("truncated"));
    const TemporaryFolder folder;
    write_file(folder.path() / "cut", set.archive.substr(0, kept));
    try {
      data::check_archive(set.spec, folder.path() / "cut");
    } catch (const data::ArchiveError& error) {
      CHECK(error.cut);
    }
  }
}

TEST_CASE("A flipped bit is noticed, in the data and in the checksum") {
  const SmallSet set(5000);
  const std::size_t size = set.archive.size();
  for (const std::size_t where : {size / 3, size - 6, size - 2}) {
    CAPTURE(where);
    std::string damaged = set.archive;
    damaged[where] = static_cast<char>(damaged[where] ^ 0x10);
    CHECK_THAT(refusal(set.spec, damaged), Catch::Contains("damaged"));
  }
}

TEST_CASE("What lies behind the end is noticed") {
  const SmallSet set;
  CHECK_THAT(refusal(set.spec, set.archive + "garbage"), Catch::Contains("behind the end"));
  CHECK_THAT(refusal(set.spec, set.archive + std::string(512, '\0')),
             Catch::Contains("behind the end"));
  CHECK_THAT(refusal(set.spec, gzip_of(tar_of(set.members) + "garbage")),
             Catch::Contains("behind the end of the tar archive"));
  // Beyond the block that the tar reader has seen.
  const std::string far = std::string(300'000, '\0') + "garbage";
  CHECK_THAT(refusal(set.spec, gzip_of(tar_of(set.members) + far)),
             Catch::Contains("behind the end of the tar archive"));
  // A second archive.
  CHECK_THAT(refusal(set.spec, set.archive + set.archive), Catch::Contains("behind the end"));
}

TEST_CASE("A file that is no archive is described") {
  const SmallSet set;
  CHECK_THAT(refusal(set.spec, ""), Catch::Contains("but empty"));
  CHECK_THAT(refusal(set.spec, "\n<!DOCTYPE HTML><title>Log in</title>"),
             Catch::Contains("a web page (HTML)"));
  CHECK_THAT(refusal(set.spec, std::string("PK\3\4zip", 8)), Catch::Contains("50 4b 03 04"));
  CHECK_THAT(refusal(set.spec, gzip_of("plain text, packed")), Catch::Contains("damaged"));
  CHECK_THAT(refusal(set.spec, gzip_of("")), Catch::Contains("archive: "));
}

TEST_CASE("Control characters of a member's name do not reach the terminal") {
  const SmallSet set;
  const std::string name = "/evil\n\x1b[2J" + std::string(500, 'x');
  const std::string message = refusal(set.spec, archive_with(set, {name.substr(0, 90), "x"}, true));
  CHECK_THAT(message, Catch::Contains("/evil??[2J"));
}

}  // namespace towers::test
