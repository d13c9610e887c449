#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "core/error.h"
#include "data/checkpoint.h"
#include "data/crc32c.h"
#include "data/file.h"
#include "data/table.h"
#include "data/tensor_slice.h"
#include "data/tensor_type.h"
#include "protos/tensor_bundle.pb.h"

namespace towers::data {
namespace {

constexpr int kMostShards = 99999;     // five digits in the file names
constexpr int kFormatVersion = 1;      // of the bundles that this reader knows
constexpr std::size_t kChunk = 65536;  // bytes read and converted at a time

std::filesystem::path with_suffix(std::filesystem::path prefix, const std::string& suffix) {
  prefix += suffix;
  return prefix;
}

std::string shard_suffix(int shard, int shards) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, shards);
  return suffix;
}

std::string read_index(const std::filesystem::path& prefix, const std::filesystem::path& index) {
  std::error_code ignored;
  if (!std::filesystem::exists(index, ignored) && std::filesystem::exists(prefix, ignored))
    throw Error(prefix.string() + " is no checkpoint of the V2 format (there is no " +
                index.filename().string() +
                "): give the prefix of one, such as DIR/model.ckpt-1000");
  return read_whole_file(index);
}

// Product of the dimensions; nothing when one is negative or the product does not fit.
std::optional<std::uint64_t> count_elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(d), &count)) return {};
  return count;
}

struct Shard {
  std::filesystem::path path;
  FileDescriptor file;
  std::uint64_t size = 0;
};

struct Entry {
  TensorInfo info;
  std::uint64_t elements = 0;
  int shard = 0;
  std::uint64_t offset = 0;  // in the shard
  std::uint32_t masked_crc = 0;
  std::vector<TensorSlice> slices;  // of a partitioned variable: it has no bytes of its own
};

}  // namespace

class CheckpointReader::Impl {
 public:
  explicit Impl(const std::filesystem::path& prefix)
      : prefix_(prefix), index_(with_suffix(prefix, ".index")) {
    Table table = decode_table(read_index(prefix, index_), index_);
    const auto header = table.find("");
    if (header == table.end()) damaged("no header");
    read_header(header->second);
    table.erase(header);
    for (const auto& [key, value] : table) add_entry(key, value);
    for (const auto& [key, entry] : entries_)
      if (!is_slice_key(key)) tensors_.push_back(entry.info);
  }

  const std::filesystem::path& prefix() const { return prefix_; }
  int shards() const { return shards_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  const TensorInfo* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() || is_slice_key(name) ? nullptr : &found->second.info;
  }

  void read(const std::string& name, std::span<float> out) const {
    const Entry& entry = find_entry(name);
    if (entry.info.type == DataType::other)
      fail(name, "is " + entry.info.type_name + ", which is not read as numbers");
    if (entry.elements != out.size())
      fail(name, "has " + std::to_string(entry.elements) + " values where " +
                     std::to_string(out.size()) + " are expected");
    if (entry.slices.empty()) return read_bytes(entry, out);
    std::uint64_t covered = 0;
    for (const TensorSlice& slice : entry.slices) covered += read_slice(entry, slice, out);
    if (covered != entry.elements) fail(name, "has slices that do not cover it");
  }

  std::int64_t read_integer(const std::string& name) const {
    const Entry& entry = find_entry(name);
    const bool readable =
        entry.info.type == DataType::int32 || entry.info.type == DataType::int64 ||
        entry.info.type == DataType::float32 || entry.info.type == DataType::float64;
    if (!readable || entry.elements != 1 || !entry.slices.empty())
      fail(name, "is no single number of type int32, int64, float32 or float64");
    std::byte bytes[8];
    const std::span<std::byte> value(bytes, static_cast<std::size_t>(entry.info.bytes));
    read_raw(entry, value);
    switch (entry.info.type) {
      case DataType::int32:
        return load<std::int32_t>(value);
      case DataType::int64:
        return load<std::int64_t>(value);
      case DataType::float32:
        return integer(name, static_cast<double>(load<float>(value)));
      default:
        return integer(name, load<double>(value));
    }
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(index_.string() + " is damaged (" + what +
                "): use another checkpoint, or copy this one again");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error("tensor " + name + " in checkpoint " + prefix_.string() + " " + what);
  }

  template <typename T>
  static T load(std::span<const std::byte> bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::int64_t integer(const std::string& name, double value) const {
    // Beyond 2^53 a double no longer tells neighbours apart; NaN fails the comparison too.
    if (!(std::abs(value) <= 9007199254740992.0) || value != std::trunc(value))
      fail(name, "holds " + std::to_string(value) + ", which is no whole number");
    return static_cast<std::int64_t>(value);
  }

  void read_header(const std::string& bytes) {
    proto::BundleHeaderProto header;
    if (!header.ParseFromString(bytes)) damaged("unreadable header");
    if (header.endianness() != proto::BundleHeaderProto::LITTLE)
      throw Error(index_.string() +
                  " is of a big-endian checkpoint: write it again on a little-endian machine");
    if (header.version().min_consumer() > kFormatVersion)
      throw Error(index_.string() + " needs a reader of format version " +
                  std::to_string(header.version().min_consumer()) + "; this one knows version " +
                  std::to_string(kFormatVersion));
    shards_ = header.num_shards();
    if (shards_ < 1 || shards_ > kMostShards)
      damaged(std::to_string(shards_) + " shards in the header");
  }

  // Every number of an entry is checked against the others and against the shard's size, so that
  // what is allocated or read later is bounded by what lies on the disk.
  void add_entry(const std::string& key, const std::string& value) {
    Entry entry;
    entry.info.name = is_slice_key(key) ? slice_owner(key) : key;
    proto::BundleEntryProto bundle;
    if (!bundle.ParseFromString(value)) damaged("unreadable entry of tensor " + entry.info.name);
    const auto bad = [&](const std::string& what) {
      damaged(what + " in the entry of tensor " + entry.info.name);
    };
    entry.info.type = from_tensorflow(bundle.dtype());
    entry.info.type_name = type_name(bundle.dtype());
    for (const auto& dim : bundle.shape().dim()) entry.info.shape.push_back(dim.size());
    const auto elements = count_elements(entry.info.shape);
    if (!elements || bundle.shape().unknown_rank()) bad("bad shape");
    entry.elements = *elements;

    const std::uint64_t size_of_element = element_size(bundle.dtype());
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(*elements, size_of_element, &bytes)) bad("bad shape");
    for (const auto& slice : bundle.slices()) add_slice(entry, slice, bad);
    if (entry.slices.empty()) {
      if (bundle.size() < 0 || bundle.offset() < 0) bad("negative size or offset");
      entry.info.bytes = static_cast<std::uint64_t>(bundle.size());
      if (size_of_element != 0 && entry.info.bytes != bytes) bad("a size that is not the shape's");
      entry.shard = bundle.shard_id();
      entry.offset = static_cast<std::uint64_t>(bundle.offset());
      entry.masked_crc = bundle.crc32c();
      check_extent(entry);
    } else {
      entry.info.bytes = bytes;
    }
    entries_.emplace(key, std::move(entry));
  }

  template <typename Bad>
  void add_slice(Entry& entry, const proto::TensorSliceProto& slice, const Bad& bad) const {
    if (slice.extent_size() != static_cast<int>(entry.info.shape.size())) bad("a slice's rank");
    TensorSlice extents;
    for (int d = 0; d < slice.extent_size(); ++d) {
      const auto& extent = slice.extent(d);
      const std::int64_t size = entry.info.shape[static_cast<std::size_t>(d)];
      const bool whole =
          extent.has_length_case() == proto::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
      if (!whole && (extent.start() < 0 || extent.length() < 0 || extent.start() > size ||
                     extent.length() > size - extent.start()))
        bad("a slice beyond the shape");
      extents.push_back(whole ? SliceExtent{} : SliceExtent{extent.start(), extent.length()});
    }
    entry.slices.push_back(std::move(extents));
  }

  // Opens the entry's shard when it is the first in it.
  void check_extent(const Entry& entry) {
    if (entry.shard < 0 || entry.shard >= shards_)
      damaged("tensor " + entry.info.name + " in shard " + std::to_string(entry.shard) + " of " +
              std::to_string(shards_));
    auto found = files_.find(entry.shard);
    if (found == files_.end()) {
      Shard shard;
      shard.path = with_suffix(prefix_, shard_suffix(entry.shard, shards_));
      shard.file = open_to_read(shard.path);
      shard.size = file_size(shard.file, shard.path);
      found = files_.emplace(entry.shard, std::move(shard)).first;
    }
    const Shard& shard = found->second;
    if (entry.offset > shard.size || entry.info.bytes > shard.size - entry.offset)
      throw Error(shard.path.string() + " is truncated: tensor " + entry.info.name +
                  " ends at byte " + std::to_string(entry.offset + entry.info.bytes) +
                  ", the file at byte " + std::to_string(shard.size) +
                  "; use another checkpoint, or copy this one again");
  }

  const Entry& find_entry(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end() || is_slice_key(name))
      throw Error("there is no tensor " + name + " in checkpoint " + prefix_.string());
    return found->second;
  }

  // Hands the entry's bytes to `use` in chunks of whole elements, then checks the checksum.
  template <typename Use>
  void read_chunks(const Entry& entry, const Use& use) const {
    const Shard& shard = files_.at(entry.shard);
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(entry.info.bytes, kChunk)));
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < entry.info.bytes;) {
      const std::size_t n =
          static_cast<std::size_t>(std::min<std::uint64_t>(entry.info.bytes - done, kChunk));
      const std::span<std::byte> chunk = std::span(buffer).first(n);
      read_at(shard.file, shard.path, entry.offset + done, chunk);
      crc = crc32c(chunk, crc);
      use(static_cast<std::size_t>(done), std::span<const std::byte>(chunk));
      done += n;
    }
    if (mask_crc32c(crc) != entry.masked_crc)
      throw Error(shard.path.string() + " is damaged: the checksum of tensor " + entry.info.name +
                  " is wrong; use another checkpoint, or copy this one again");
  }

  void read_raw(const Entry& entry, std::span<std::byte> out) const {
    read_chunks(entry, [&](std::size_t done, std::span<const std::byte> chunk) {
      std::copy(chunk.begin(), chunk.end(), out.begin() + static_cast<std::ptrdiff_t>(done));
    });
  }

  void read_bytes(const Entry& entry, std::span<float> out) const {
    const std::size_t size =
        static_cast<std::size_t>(entry.info.bytes) / std::max<std::size_t>(out.size(), 1);
    read_chunks(entry, [&](std::size_t done, std::span<const std::byte> chunk) {
      convert_to_float(entry.info.type, chunk, out.subspan(done / size, chunk.size() / size));
    });
  }

  // Reads one slice of a partitioned variable into its box of `out`, row by row. Returns its size.
  std::size_t read_slice(const Entry& whole, const TensorSlice& slice, std::span<float> out) const {
    const auto found = entries_.find(slice_key(whole.info.name, slice));
    if (found == entries_.end()) fail(whole.info.name, "lacks one of its slices");
    const Entry& part = found->second;

    const std::size_t rank = slice.size();
    std::vector<std::size_t> start(rank), length(rank), stride(rank);
    std::size_t elements = 1;
    for (std::size_t d = rank; d-- > 0;) {
      const SliceExtent& e = slice[d];
      stride[d] =
          d + 1 == rank ? 1 : stride[d + 1] * static_cast<std::size_t>(whole.info.shape[d + 1]);
      start[d] = static_cast<std::size_t>(e.start);
      length[d] = static_cast<std::size_t>(e.length < 0 ? whole.info.shape[d] : e.length);
      elements *= length[d];
    }
    if (part.elements != elements || part.info.type != whole.info.type || !part.slices.empty())
      fail(whole.info.name, "has a slice of another shape or type");
    if (elements == 0) return 0;
    std::vector<float> values(elements);
    read_bytes(part, values);

    const std::size_t row = rank == 0 ? 1 : length[rank - 1];
    for (std::size_t first = 0; first < elements; first += row) {
      std::size_t to = 0;
      for (std::size_t d = rank, rest = first; d-- > 0; rest /= length[d])
        to += (start[d] + rest % length[d]) * stride[d];
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), row,
                  out.begin() + static_cast<std::ptrdiff_t>(to));
    }
    return elements;
  }

  std::filesystem::path prefix_, index_;
  int shards_ = 0;
  std::map<std::string, Entry> entries_;  // also of slices, under their keys
  std::map<int, Shard> files_;            // the shards that hold something
  std::vector<TensorInfo> tensors_;
};

CheckpointReader::CheckpointReader(const std::filesystem::path& prefix)
    : impl_(std::make_unique<Impl>(prefix)) {}
CheckpointReader::~CheckpointReader() = default;

const std::filesystem::path& CheckpointReader::prefix() const {
  return impl_->prefix();
}
int CheckpointReader::shards() const {
  return impl_->shards();
}
const std::vector<TensorInfo>& CheckpointReader::tensors() const {
  return impl_->tensors();
}
bool CheckpointReader::contains(const std::string& name) const {
  return find(name) != nullptr;
}
const TensorInfo* CheckpointReader::find(const std::string& name) const {
  return impl_->find(name);
}
void CheckpointReader::read(const std::string& name, std::span<float> out) const {
  impl_->read(name, out);
}
std::int64_t CheckpointReader::read_integer(const std::string& name) const {
  return impl_->read_integer(name);
}

}  // namespace towers::data
