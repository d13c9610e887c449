#include "data/table.h"

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/error.h"

namespace towers::data {
namespace {

// TensorFlow's size of a block before it is closed.
constexpr std::size_t kBlockSize = 262144;
// Two block handles padded to 40 bytes, then the magic number.
constexpr std::size_t kFooterSize = 48;
constexpr std::size_t kBlockTrailer = 5;  // type and checksum
constexpr std::uint64_t kMagic = 0xdb4775248b80fb57u;

class MemorySink : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

class MemorySource : public leveldb::RandomAccessFile {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                       char*) const override {
    if (offset > bytes_.size() || n > bytes_.size() - offset)
      return leveldb::Status::Corruption("block beyond the end of the file");
    *result = leveldb::Slice(bytes_.data() + offset, n);
    return leveldb::Status::OK();
  }

 private:
  std::string_view bytes_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(path.string() + " is damaged (" + what +
              "): use another checkpoint, or copy this one again");
}

bool read_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The footer has no checksum, and LevelDB allocates what its handles ask for: look at them first.
void check_footer(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.size() < kFooterSize)
    fail(path, "too short: " + std::to_string(bytes.size()) + " bytes");
  const std::size_t body = bytes.size() - kFooterSize;
  std::string_view footer = bytes.substr(body);
  std::uint64_t magic = 0;
  std::memcpy(&magic, footer.data() + kFooterSize - sizeof magic, sizeof magic);
  if (magic != kMagic) fail(path, "truncated, or no table");
  footer.remove_suffix(sizeof magic);
  for (int handle = 0; handle < 2; ++handle) {
    std::uint64_t offset = 0, size = 0;
    if (!read_varint(footer, offset) || !read_varint(footer, size) || offset > body ||
        size > body - offset || body - offset - size < kBlockTrailer)
      fail(path, "bad footer");
  }
}

}  // namespace

std::string encode_table(const Table& table) {
  leveldb::Options options;
  options.block_size = kBlockSize;
  options.compression = leveldb::kNoCompression;
  MemorySink sink;
  leveldb::TableBuilder builder(options, &sink);
  for (const auto& [key, value] : table) builder.Add(key, value);
  // The sink can't fail, so neither can this.
  builder.Finish();
  return std::move(sink.bytes);
}

Table decode_table(const std::string& bytes, const std::filesystem::path& path) {
  check_footer(bytes, path);
  leveldb::Options options;
  options.paranoid_checks = true;
  MemorySource source(bytes);
  leveldb::Table* opened = nullptr;
  const leveldb::Status status = leveldb::Table::Open(options, &source, bytes.size(), &opened);
  if (!status.ok()) fail(path, status.ToString());
  const std::unique_ptr<leveldb::Table> table(opened);

  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> entry(table->NewIterator(read));
  Table result;
  for (entry->SeekToFirst(); entry->Valid(); entry->Next()) {
    const bool added = result.emplace(entry->key().ToString(), entry->value().ToString()).second;
    if (!added) fail(path, "an entry appears twice");
  }
  if (!entry->status().ok()) fail(path, entry->status().ToString());
  return result;
}

}  // namespace towers::data
