// ensure_cifar10's decisions: what is there already, what may be used, what is fetched again.

#include <catch2/catch.hpp>

#include "download_fixture.h"
#include "without_rights.h"

namespace towers::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

struct Decision : DownloadFixture {
  Decision() { options.attempts = 1; }

  void put_set(const fs::path& where) {
    fs::create_directories(where);
    for (const data::ArchiveMember& member : set.spec.members)
      write_file(where / member.name, set.content(member.name));
  }
  void put_archive(const std::string& bytes) {
    fs::create_directories(data_dir);
    write_file(archive, bytes);
  }
  // The set's files, packed again: whole, but of another digest and size.
  std::string rebuilt() const {
    std::vector<Member> members = set.members;
    members.push_back({"readme.html", "rebuilt"});
    return gzip_of(tar_of(members));
  }
  fs::path inside() const { return data_dir / set.spec.folder; }
  // As run(), but as a user who may not write where root made a folder.
  std::string run_without_rights() {
    return error_without_rights([this] { data::ensure_archive(set.spec, data_dir, options); });
  }
};

}  // namespace

TEST_CASE_METHOD(Decision, "A complete set needs no network, no archive and no rights") {
  serve_well();
  const bool itself = GENERATE(false, true);
  const fs::path where = itself ? data_dir : inside();
  put_set(where);
  fs::remove(where / "batches.meta.txt");  // nothing reads it
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(where, fs::perms(0555));
  fs::permissions(data_dir, fs::perms(0555));
  CHECK(run_without_rights() == "");
  options.allow_network = false;
  CHECK(run() == "");
  fs::permissions(data_dir, fs::perms(0755));
  fs::permissions(where, fs::perms(0755));
  CHECK(server->requests().empty());
  CHECK(messages() == "");
}

TEST_CASE_METHOD(Decision,
                 "Without network the address and the place are printed, nothing is made") {
  serve_well();
  options.allow_network = false;
  CHECK_THAT(run(),
             Contains(options.url) && Contains(archive.string()) && Contains("--nodownload"));
  CHECK_FALSE(fs::exists(data_dir));
  CHECK(server->requests().empty());

  data::DownloadOptions official;
  official.allow_network = false;
  REQUIRE_THROWS_WITH(
      data::ensure_cifar10(data_dir, official),
      Contains(data::kCifar10Url) && Contains((data_dir / "cifar-10-binary.tar.gz").string()));
}

TEST_CASE_METHOD(Decision, "The archive that lies there is extracted, without network") {
  options.allow_network = false;
  put_archive(set.archive);
  set.spec.url = options.url;
  SECTION("the official one") {
    REQUIRE(run() == "");
    CHECK(messages() == "");
  }
  SECTION("a rebuilt one, with a warning") {
    put_archive(rebuilt());
    REQUIRE(run() == "");
    CHECK_THAT(messages(),
               Contains("warning: " + archive.string() + " is not the official archive") &&
                   Contains(" instead of " + std::to_string(set.archive.size())));
  }
  SECTION("one of another address without a digest, with a warning") {
    options.url = "http://mirror.invalid/a.tar.gz";
    REQUIRE(run() == "");
    CHECK_THAT(messages(), Contains("warning: no --data_sha256"));
  }
  SECTION("one of the digest given, in whatever case") {
    put_archive(rebuilt());
    options.sha256 = sha256_of(rebuilt());
    for (char& c : options.sha256) c = static_cast<char>(std::toupper(c));
    REQUIRE(run() == "");
    CHECK(messages() == "");
  }
  CHECK(complete());
  CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
}

TEST_CASE_METHOD(Decision, "Half an archive under the final name is completed by range") {
  serve_well();
  const std::size_t half = set.archive.size() / 2;
  put_archive(set.archive.substr(0, half));
  SECTION("from a good server") {
    REQUIRE(run() == "");
    CHECK(complete());
    CHECK_THAT(messages(), Contains("truncated") && Contains("fetching the rest"));
    REQUIRE(server->requests().size() == 1);
    CHECK(server->requests()[0].header("range") == "bytes=" + std::to_string(half) + "-");
    CHECK(listing() == "cifar-10-batches-bin small-set.tar.gz");
  }
  SECTION("where a longer part is under way, that goes on") {
    write_file(part, set.archive.substr(0, half + 10));
    REQUIRE(run() == "");
    CHECK(server->requests()[0].header("range") == "bytes=" + std::to_string(half + 10) + "-");
  }
  SECTION("and is not left there when the server is down") {
    server.reset();
    CHECK(run() != "");
    CHECK_FALSE(fs::exists(archive));
    CHECK(read_file(part).size() == half);
  }
  SECTION("but without a digest nothing is patched together") {
    options.url += "?mirror";
    REQUIRE(run() == "");
    CHECK(complete());
    CHECK(server->requests()[0].header("range") == "");
  }
  SECTION("without network it is an error") {
    options.allow_network = false;
    CHECK_THAT(run(), Contains(archive.string()) && Contains("truncated") && Contains(options.url));
    CHECK(read_file(archive).size() == half);
  }
}

TEST_CASE_METHOD(Decision, "A damaged archive under the final name is replaced") {
  serve_well();
  std::string damaged = set.archive;
  SECTION("a flipped bit") {
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  }
  SECTION("a web page") {
    damaged = "<html>moved</html>";
  }
  SECTION("an empty file") {
    damaged = "";
  }
  SECTION("trailing garbage") {
    damaged += "garbage";
  }
  put_archive(damaged);
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK(read_file(archive) == set.archive);
  CHECK_THAT(messages(), Contains(archive.string() + ": ") && Contains("fetching another"));
  CHECK(server->requests()[0].header("range") == "");
}

TEST_CASE_METHOD(Decision, "A whole archive of another digest than the one given is replaced") {
  serve_well();
  options.sha256 = set.spec.sha256;
  put_archive(rebuilt());
  SECTION("from a good server") {
    REQUIRE(run() == "");
    CHECK(complete());
    CHECK(read_file(archive) == set.archive);
    CHECK_THAT(messages(), Contains("fetching another"));
  }
  SECTION("but kept when the server is down") {
    server.reset();
    CHECK(run() != "");
    CHECK(read_file(archive) == rebuilt());
  }
  SECTION("and an error without network, with both digests") {
    options.allow_network = false;
    options.sha256 = std::string(64, 'a');
    CHECK_THAT(run(), Contains("sha256 " + sha256_of(rebuilt())) &&
                          Contains("instead of " + options.sha256) && Contains("--nodownload"));
    CHECK(read_file(archive) == rebuilt());
  }
}

TEST_CASE_METHOD(Decision,
                 "An archive of the right digest that lacks a batch is not fetched again") {
  serve_well();
  std::vector<Member> members = set.members;
  members.erase(members.begin() + 1);
  const std::string lacking = gzip_of(tar_of(members));
  put_archive(lacking);
  options.sha256 = sha256_of(lacking);
  CHECK_THAT(run(),
             Contains(archive.string()) && Contains("lacks cifar-10-batches-bin/data_batch_1.bin"));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision, "An incomplete set without an archive is an error at once") {
  serve_well();
  put_set(inside());
  SECTION("a missing batch") {
    fs::remove(inside() / "data_batch_2.bin");
    CHECK_THAT(run(), Contains((inside() / "data_batch_2.bin").string() + " is missing"));
  }
  SECTION("a short one") {
    write_file(inside() / "test_batch.bin", "short");
    CHECK_THAT(run(),
               Contains((inside() / "test_batch.bin").string() + " has 5 bytes instead of 60000"));
  }
  SECTION("a folder in the place of one") {
    fs::remove(inside() / "test_batch.bin");
    fs::create_directories(inside() / "test_batch.bin");
    CHECK_THAT(run(), Contains("is not a file"));
  }
  CHECK_THAT(run(), Contains("delete " + inside().string()));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision, "An incomplete set beside its archive is extracted again") {
  options.allow_network = false;
  put_archive(set.archive);
  put_set(inside());
  fs::remove(inside() / "data_batch_2.bin");
  write_file(inside() / "test_batch.bin", "short");
  write_file(inside() / "data_batch_2.bin.tmp.123", "left by a process that was killed");
  write_file(inside() / "notes.tmp.123", "not ours");
  REQUIRE(run() == "");
  CHECK(complete());
  CHECK_THAT(messages(), Contains("data_batch_2.bin is missing: extracting the set again"));
  CHECK_FALSE(fs::exists(inside() / "data_batch_2.bin.tmp.123"));
  CHECK(fs::exists(inside() / "notes.tmp.123"));
}

TEST_CASE_METHOD(Decision, "A data_dir beside the set is corrected, not downloaded to") {
  serve_well();
  put_set(inside());
  const fs::path right = data_dir;
  SECTION("one level too high") {
    data_dir = folder.path();
  }
  SECTION("one level too deep") {
    data_dir = inside() / "deeper";
  }
  const std::string message = run();
  CHECK_THAT(message, Contains("use --data_dir=" + right.string()));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision, "A data_dir that is a file is an error") {
  serve_well();
  write_file(data_dir, "");
  CHECK_THAT(run(), Contains(data_dir.string()));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision, "The pickle version of the set is named, not downloaded over") {
  serve_well();
  const bool itself = GENERATE(false, true);
  const fs::path where = itself ? data_dir : data_dir / "cifar-10-batches-py";
  fs::create_directories(where);
  write_file(where / "data_batch_1", "pickle");
  CHECK_THAT(run(), Contains(data_dir.string()) && Contains("pickle"));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision, "A data_dir that cannot be written is named with the reason") {
  serve_well();
  fs::permissions(folder.path(), fs::perms(0755));
  std::string message;
  SECTION("it cannot be made") {
    message = run_without_rights();
  }
  SECTION("it is there, and read-only") {
    fs::create_directories(data_dir);
    fs::permissions(data_dir, fs::perms(0555));
    message = run_without_rights();
  }
  SECTION("there is an archive, but no right to extract it") {
    put_archive(set.archive);
    fs::permissions(data_dir, fs::perms(0555));
    message = run_without_rights();
  }
  CHECK_THAT(message, Contains(data_dir.string()) && Contains("Permission denied"));
  CHECK(server->requests().empty());
  if (fs::exists(data_dir)) fs::permissions(data_dir, fs::perms(0755));
}

TEST_CASE_METHOD(Decision, "Too little space is said before the transfer") {
  serve_well();
  set.spec.members.back().bytes = 1ULL << 62;
  CHECK_THAT(run(), Contains(data_dir.string()) && Contains("bytes and") && Contains("are free"));
  CHECK(server->requests().empty());
}

TEST_CASE_METHOD(Decision,
                 "A folder in the archive's place is an error, not the end of a download") {
  serve_well();
  fs::create_directories(archive);
  CHECK_THAT(run(), Contains(archive.string() + " is not a file"));
  CHECK(server->requests().empty());
}

}  // namespace towers::test
