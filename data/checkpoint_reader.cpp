#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "core/error.h"
#include "data/checkpoint.h"
#include "data/checkpoint_index.h"
#include "data/crc32c.h"
#include "data/file.h"
#include "data/tensor_slice.h"
#include "data/tensor_type.h"

namespace towers::data {
namespace {

constexpr std::size_t kReadChunk = 65536;  // bytes read and converted at a time

std::filesystem::path shard_path(std::filesystem::path prefix, int shard, int shards) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, shards);
  prefix += suffix;
  return prefix;
}

struct Shard {
  std::filesystem::path path;
  FileDescriptor file;
};

// The box of a slice in its variable, without "whole dimension".
struct Box {
  Box(const TensorSlice& slice, const std::vector<std::int64_t>& shape)
      : start(slice.size()), length(slice.size()), stride(slice.size()) {
    std::size_t step = 1;
    for (std::size_t d = slice.size(); d-- > 0;) {
      start[d] = static_cast<std::size_t>(slice[d].start);
      length[d] = static_cast<std::size_t>(slice[d].length < 0 ? shape[d] : slice[d].length);
      stride[d] = step;
      step *= static_cast<std::size_t>(shape[d]);
      elements *= length[d];
    }
  }

  std::vector<std::size_t> start, length, stride;
  std::size_t elements = 1;
};

// Copies the values of a box, row-major, to their places in the whole variable, row by row.
template <typename Value>
void scatter(const std::vector<Value>& values, const Box& box, std::span<Value> whole) {
  const std::size_t rank = box.start.size();
  const std::size_t row = rank == 0 ? 1 : box.length[rank - 1];
  for (std::size_t first = 0; first < values.size(); first += row) {
    std::size_t to = 0;
    for (std::size_t d = rank, rest = first; d-- > 0; rest /= box.length[d])
      to += (box.start[d] + rest % box.length[d]) * box.stride[d];
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), row,
                whole.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

template <typename T>
T load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

class CheckpointReader::Impl {
 public:
  explicit Impl(const std::filesystem::path& prefix)
      : prefix_(prefix), index_(read_checkpoint_index(prefix)) {
    for (const auto& [key, entry] : index_.entries) {
      if (entry.slices.empty()) open_shard(entry);
      if (!is_slice_key(key)) tensors_.push_back(entry.info);
    }
    for (const auto& [key, entry] : index_.entries)
      if (!entry.slices.empty()) check_size(entry);
  }

  const std::filesystem::path& prefix() const { return prefix_; }
  int shards() const { return index_.shards; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  const TensorInfo* find(const std::string& name) const {
    const auto found = index_.entries.find(name);
    return found == index_.entries.end() || is_slice_key(name) ? nullptr : &found->second.info;
  }

  template <typename Value>
  void read(const std::string& name, std::span<Value> out) const {
    const CheckpointEntry& entry = find_entry(name);
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
    const CheckpointEntry& entry = find_entry(name);
    const bool readable =
        entry.info.type == DataType::int32 || entry.info.type == DataType::int64 ||
        entry.info.type == DataType::float32 || entry.info.type == DataType::float64;
    if (!readable || entry.elements != 1 || !entry.slices.empty())
      fail(name, "is not a single number of type int32, int64, float32 or float64");
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
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error("tensor " + name + " in checkpoint " + prefix_.string() + " " + what);
  }

  std::int64_t integer(const std::string& name, double value) const {
    // Beyond 2^53 a double no longer tells neighbours apart; NaN fails the comparison too.
    if (!(std::abs(value) <= 9007199254740992.0) || value != std::trunc(value))
      fail(name, "holds " + std::to_string(value) + ", which is not a whole number");
    return static_cast<std::int64_t>(value);
  }

  // Opens the entry's shard unless an earlier one did, and checks that the entry lies in it: so
  // what is allocated and read later is bounded by what lies on the disk.
  void open_shard(const CheckpointEntry& entry) {
    auto found = shards_.find(entry.shard);
    if (found == shards_.end()) {
      const std::filesystem::path path = shard_path(prefix_, entry.shard, index_.shards);
      found = shards_.emplace(entry.shard, Shard{path, open_to_read(path)}).first;
    }
    const Shard& shard = found->second;
    const std::uint64_t size = file_size(shard.file, shard.path);
    if (entry.offset <= size && entry.info.bytes <= size - entry.offset) return;
    throw Error(shard.path.string() + " is truncated: tensor " + entry.info.name + " has " +
                std::to_string(entry.info.bytes) + " bytes from byte " +
                std::to_string(entry.offset) + " on, the file ends at byte " +
                std::to_string(size) + "; use another checkpoint, or copy this one again");
  }

  // A partitioned variable has no bytes of its own, but no more than lie on the disk.
  void check_size(const CheckpointEntry& entry) const {
    std::uint64_t bytes = 0;
    for (const auto& [number, shard] : shards_) bytes += file_size(shard.file, shard.path);
    if (entry.info.bytes <= bytes) return;
    fail(entry.info.name, "has " + std::to_string(entry.info.bytes) +
                              " bytes by its shape, all files together have " +
                              std::to_string(bytes) +
                              "; use another checkpoint, or copy this one again");
  }

  const CheckpointEntry& find_entry(const std::string& name) const {
    const auto found = index_.entries.find(name);
    if (found == index_.entries.end() || is_slice_key(name))
      throw Error("there is no tensor " + name + " in checkpoint " + prefix_.string());
    return found->second;
  }

  // Hands the entry's bytes to `use` in chunks of whole elements, then checks the checksum.
  template <typename Use>
  void read_chunks(const CheckpointEntry& entry, const Use& use) const {
    const Shard& shard = shards_.at(entry.shard);
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min<std::uint64_t>(entry.info.bytes, kReadChunk)));
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < entry.info.bytes;) {
      const std::size_t n =
          static_cast<std::size_t>(std::min<std::uint64_t>(entry.info.bytes - done, kReadChunk));
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

  void read_raw(const CheckpointEntry& entry, std::span<std::byte> out) const {
    read_chunks(entry, [&](std::size_t done, std::span<const std::byte> chunk) {
      std::copy(chunk.begin(), chunk.end(), out.begin() + static_cast<std::ptrdiff_t>(done));
    });
  }

  template <typename Value>
  void read_bytes(const CheckpointEntry& entry, std::span<Value> out) const {
    const std::size_t size =
        static_cast<std::size_t>(entry.info.bytes) / std::max<std::size_t>(out.size(), 1);
    read_chunks(entry, [&](std::size_t done, std::span<const std::byte> chunk) {
      convert_values(entry.info.type, chunk, out.subspan(done / size, chunk.size() / size));
    });
  }

  // Reads one slice of a partitioned variable into its box of `out`. Returns its size.
  template <typename Value>
  std::size_t read_slice(const CheckpointEntry& whole, const TensorSlice& slice,
                         std::span<Value> out) const {
    const auto found = index_.entries.find(slice_key(whole.info.name, slice));
    if (found == index_.entries.end()) fail(whole.info.name, "lacks one of its slices");
    const CheckpointEntry& part = found->second;
    const Box box(slice, whole.info.shape);
    if (part.elements != box.elements || part.info.type != whole.info.type || !part.slices.empty())
      fail(whole.info.name, "has a slice of another shape or type");
    std::vector<Value> values(box.elements);
    read_bytes(part, std::span<Value>(values));
    scatter(values, box, out);
    return box.elements;
  }

  std::filesystem::path prefix_;
  CheckpointIndex index_;
  std::map<int, Shard> shards_;  // those that hold something
  std::vector<TensorInfo> tensors_;
};

CheckpointReader::CheckpointReader(const std::filesystem::path& prefix)
    : impl_(std::make_unique<Impl>(prefix)) {}
CheckpointReader::~CheckpointReader() = default;

const std::filesystem::path& CheckpointReader::prefix() const {
  return impl_->prefix();
}
std::string CheckpointReader::source() const {
  return "checkpoint " + prefix().string();
}
int CheckpointReader::shards() const {
  return impl_->shards();
}
const std::vector<TensorInfo>& CheckpointReader::tensors() const {
  return impl_->tensors();
}
const TensorInfo* CheckpointReader::find(const std::string& name) const {
  return impl_->find(name);
}
void CheckpointReader::read(const std::string& name, std::span<float> out) const {
  impl_->read(name, out);
}
void CheckpointReader::read(const std::string& name, std::span<double> out) const {
  impl_->read(name, out);
}
std::int64_t CheckpointReader::read_integer(const std::string& name) const {
  return impl_->read_integer(name);
}

}  // namespace towers::data
