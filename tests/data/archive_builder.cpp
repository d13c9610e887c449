#include "archive_builder.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <memory>
#include <random>
#include <stdexcept>

#include "data/digest.h"
#include "tests/support.h"

namespace towers::test {
namespace {

void describe(archive_entry* entry, const Member& member) {
  archive_entry_set_pathname(entry, member.path.c_str());
  archive_entry_set_perm(entry, 0644);
  switch (member.kind) {
    case Member::Kind::file:
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
      break;
    case Member::Kind::folder:
      archive_entry_set_filetype(entry, AE_IFDIR);
      break;
    case Member::Kind::symbolic_link:
      archive_entry_set_filetype(entry, AE_IFLNK);
      archive_entry_set_symlink(entry, member.content.c_str());
      break;
    case Member::Kind::hard_link:
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_hardlink(entry, member.content.c_str());
      break;
    case Member::Kind::device:
      archive_entry_set_filetype(entry, AE_IFBLK);
      archive_entry_set_rdev(entry, 1);
      break;
    case Member::Kind::fifo:
      archive_entry_set_filetype(entry, AE_IFIFO);
      break;
  }
}

}  // namespace

std::string tar_of(const std::vector<Member>& members) {
  std::string tar;
  const std::unique_ptr<archive, decltype(&archive_write_free)> writer(archive_write_new(),
                                                                       &archive_write_free);
  archive_write_set_format_ustar(writer.get());
  archive_write_open(
      writer.get(), &tar, nullptr,
      [](archive*, void* out, const void* bytes, std::size_t size) -> la_ssize_t {
        static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
        return static_cast<la_ssize_t>(size);
      },
      nullptr);
  for (const Member& member : members) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              &archive_entry_free);
    describe(entry.get(), member);
    if (archive_write_header(writer.get(), entry.get()) != ARCHIVE_OK)
      throw std::runtime_error(archive_error_string(writer.get()));
    if (member.kind == Member::Kind::file && !member.content.empty())
      archive_write_data(writer.get(), member.content.data(), member.content.size());
  }
  archive_write_close(writer.get());
  return tar;
}

std::string gzip_of(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

SmallSet::SmallSet(std::size_t bytes) {
  spec.file = "small-set.tar.gz";
  spec.folder = "cifar-10-batches-bin";
  members.push_back({spec.folder + "/", "", Member::Kind::folder});
  unsigned seed = 0;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"}) {
    spec.members.push_back({name, bytes});
    members.push_back({spec.folder + "/" + name, noise(bytes, ++seed)});
  }
  spec.members.push_back({"batches.meta.txt", 100, false});
  members.push_back({spec.folder + "/batches.meta.txt", "airplane\n"});
  archive = gzip_of(tar_of(members));
  spec.bytes = archive.size();
  spec.sha256 = sha256_of(archive);
  spec.md5 = "md5-of-the-small-set";
}

const std::string& SmallSet::content(const std::string& name) const {
  for (const Member& member : members)
    if (member.path == spec.folder + "/" + name) return member.content;
  throw std::runtime_error("no member " + name);
}

std::string sha256_of(const std::string& content) {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", content);
  return data::sha256_of_file(folder.path() / "file");
}

}  // namespace towers::test
