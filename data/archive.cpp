// Streams a tar archive: only what is expected of it reaches the disk.

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>
#include <memory>
#include <set>

#include "data/archive_internal.h"
#include "data/dataset.h"
#include "data/gzip_reader.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

// Read-mes and the like, together; more is no copy of this set but a decompression bomb.
constexpr std::uint64_t kOtherBytes = 64ULL << 20;

// Where a member's bytes go; the empty piece at the end completes it.
using Sink = std::function<void(Bytes)>;
using OpenSink = std::function<Sink(const ArchiveMember&)>;

// A member's name for a one-line message: it comes from a stranger.
std::string printable(std::string name) {
  constexpr std::size_t kLongest = 120;
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "...";
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return name;
}

class ArchiveReader {
 public:
  ArchiveReader(const ArchiveSpec& spec, const fs::path& path)
      : spec_(spec), path_(path), source_(path), tar_(archive_read_new(), &archive_read_free) {
    if (!tar_) throw Error(path.string() + ": out of memory");
    archive_read_support_format_tar(tar_.get());
    limit_ = kOtherBytes;
    for (const ArchiveMember& member : spec.members) limit_ += member.bytes;
  }

  // Throws unless the whole archive is right.
  void read(const OpenSink& open_sink) {
    check(archive_read_open(tar_.get(), this, nullptr, &ArchiveReader::next_block, nullptr));
    archive_entry* entry = nullptr;
    while (check(archive_read_next_header(tar_.get(), &entry)) != ARCHIVE_EOF) {
      const ArchiveMember* member = accept(entry);
      if (!member) continue;
      Sink sink = open_sink(*member);
      copy_data(*member, sink);
      sink({});
    }
    require_end();
    for (const ArchiveMember& member : spec_.members)
      if (member.required && !taken_.contains(member.name))
        fail("lacks " + spec_.folder + "/" + member.name + hint_);
  }

 private:
  // libarchive's read callback. An exception must not cross C frames: it waits in error_.
  static la_ssize_t next_block(archive* tar, void* self, const void** bytes) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    try {
      reader.block_ = reader.source_.next();
      if (reader.source_.position() > reader.limit_)
        reader.fail("holds more than " + std::to_string(reader.limit_) +
                    " bytes, far more than the set (at " + printable(reader.current_) + ")");
      *bytes = reader.block_.data();
      return static_cast<la_ssize_t>(reader.block_.size());
    } catch (...) {
      reader.error_ = std::current_exception();
      archive_set_error(tar, EIO, "reading failed");
      return -1;
    }
  }

  int check(int status) {
    if (error_) std::rethrow_exception(error_);
    if (status >= ARCHIVE_WARN) return status;
    const char* reason = archive_error_string(tar_.get());
    fail("damaged: " + printable(reason ? reason : "not a valid tar archive"));
  }

  [[noreturn]] void fail(const std::string& what) const { throw ArchiveError(path_, what); }

  // The member that `entry` is, or null for one to skip. What no copy of the set has is refused,
  // skipped or not: such an archive was not made to be read, but to do harm.
  const ArchiveMember* accept(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    current_ = raw ? raw : "a member without a readable name";
    const std::string shown = printable(current_);
    const fs::path name(current_);
    if (name.is_absolute()) fail("refused: absolute path " + shown);
    for (const fs::path& part : name)
      if (part == "..") fail("refused: '..' in the path " + shown);
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) || type == AE_IFLNK) fail("refused: " + shown + " is a link");
    if (type != AE_IFREG && type != AE_IFDIR)
      fail("refused: " + shown + " is neither a file nor a folder");

    fs::path plain = name.lexically_normal();  // tar often writes ./NAME, and FOLDER/
    if (!plain.has_filename()) plain = plain.parent_path();
    if (!plain.empty() && *plain.begin() == "cifar-10-batches-py")
      hint_ = " (it is the Python version of the set; the binary version is needed)";
    const auto member = std::find_if(
        spec_.members.begin(), spec_.members.end(),
        [&](const ArchiveMember& one) { return plain == fs::path(spec_.folder) / one.name; });
    if (member == spec_.members.end()) return nullptr;
    if (type != AE_IFREG) fail("refused: " + shown + " is a folder");
    if (!taken_.insert(member->name).second) fail("refused: " + shown + " is there twice");
    const auto bytes = static_cast<std::uint64_t>(archive_entry_size(entry));
    if (bytes > member->bytes || (member->required && bytes < member->bytes))
      fail("refused: " + shown + " has " + std::to_string(bytes) + " bytes instead of " +
           std::to_string(member->bytes));
    return &*member;
  }

  void copy_data(const ArchiveMember& member, const Sink& sink) {
    la_int64_t written = 0;
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while (check(archive_read_data_block(tar_.get(), &bytes, &size, &offset)) != ARCHIVE_EOF) {
      if (offset != written) fail("refused: " + member.name + " is a sparse file");
      written += static_cast<la_int64_t>(size);
      if (static_cast<std::uint64_t>(written) > member.bytes)
        fail("refused: " + member.name + " has more bytes than its header says");
      if (size > 0) sink({static_cast<const std::byte*>(bytes), size});
    }
    if (member.required && static_cast<std::uint64_t>(written) != member.bytes)
      fail("truncated: " + member.name + " has " + std::to_string(written) + " bytes instead of " +
           std::to_string(member.bytes));
  }

  // libarchive stops at the tar's end mark; the checksum of the gzip stream comes after the
  // padding.
  void require_end() {
    const auto used = static_cast<std::uint64_t>(archive_filter_bytes(tar_.get(), 0));
    const std::uint64_t unused = source_.position() - std::min(used, source_.position());
    Bytes rest = block_.last(std::min<std::size_t>(block_.size(), unused));
    do {
      const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
      if (!std::all_of(rest.begin(), rest.end(), is_zero))
        fail("damaged: data behind the end of the tar archive");
      if (source_.position() > limit_) fail("refused: endless padding behind the archive's end");
      rest = source_.next();
    } while (!rest.empty());
  }

  const ArchiveSpec& spec_;
  fs::path path_;
  GzipReader source_;
  std::unique_ptr<archive, decltype(&archive_read_free)> tar_;
  std::uint64_t limit_ = 0;
  Bytes block_;  // the last piece given to libarchive
  std::exception_ptr error_;
  std::string current_ = "the first member";
  std::string hint_;
  std::set<std::string> taken_;
};

}  // namespace

StagedFiles stage_members(const ArchiveSpec& spec, const fs::path& archive, const fs::path& folder,
                          const std::function<void(std::uint64_t bytes)>& progress) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_file_error("create the folder", folder, error.value());
  StagedFiles files;
  std::uint64_t written = 0;
  try {
    ArchiveReader(spec, archive).read([&](const ArchiveMember& member) -> Sink {
      files.push_back(std::make_unique<AtomicFile>(folder / member.name));
      return [&, file = files.back().get()](Bytes bytes) {
        bytes.empty() ? file->sync() : file->write(bytes);
        written += bytes.size();
        if (progress) progress(written);
      };
    });
  } catch (...) {
    files.clear();
    fs::remove(folder, error);  // if it is empty
    throw;
  }
  return files;
}

void commit_members(StagedFiles members, const fs::path& folder) {
  for (const auto& member : members) member->rename();
  sync_folder(folder);
}

void check_archive(const ArchiveSpec& spec, const fs::path& archive) {
  ArchiveReader(spec, archive).read([](const ArchiveMember&) -> Sink { return [](Bytes) {}; });
}

const ArchiveSpec& cifar10_spec() {
  static const ArchiveSpec spec = [] {
    constexpr std::uint64_t kBatchBytes = std::uint64_t{10000} * kRecordBytes;
    ArchiveSpec s;
    s.file = "cifar-10-binary.tar.gz";
    s.folder = "cifar-10-batches-bin";
    for (int batch = 1; batch <= 5; ++batch)
      s.members.push_back({"data_batch_" + std::to_string(batch) + ".bin", kBatchBytes});
    s.members.push_back({"test_batch.bin", kBatchBytes});
    s.members.push_back({"batches.meta.txt", 4096, false});  // 61 bytes: the class names
    s.url = kCifar10Url;
    s.sha256 = kCifar10Sha256;
    s.md5 = kCifar10Md5;
    s.bytes = kCifar10Bytes;
    return s;
  }();
  return spec;
}

}  // namespace towers::data
