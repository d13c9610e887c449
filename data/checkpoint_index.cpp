#include "data/checkpoint_index.h"

#include <optional>

#include "core/error.h"
#include "data/file.h"
#include "data/run_folder.h"
#include "data/table.h"
#include "data/tensor_type.h"
#include "protos/tensor_bundle.pb.h"

namespace towers::data {
namespace {

constexpr int kMostShards = 99999;  // five digits in the file names
constexpr int kFormatVersion = 1;   // of the bundles that this reader knows

[[noreturn]] void damaged(const std::filesystem::path& index, const std::string& what) {
  throw Error(index.string() + " is damaged (" + what +
              "): use another checkpoint, or copy this one again");
}

std::string read_file(const std::filesystem::path& prefix, const std::filesystem::path& index) {
  std::error_code error;
  if (!std::filesystem::exists(index, error) && !error) {
    const bool other = std::filesystem::exists(prefix, error);
    const std::filesystem::path folder = prefix.parent_path().empty() ? "." : prefix.parent_path();
    std::vector<std::filesystem::path> there;
    if (!other && std::filesystem::is_directory(folder, error)) there = checkpoints_in(folder);
    const std::string names =
        "a run's folder or the prefix of a checkpoint, such as DIR/model.ckpt-1000";
    throw Error((other ? prefix.string() + " is not a checkpoint of the V2 format"
                       : "there is no checkpoint " + prefix.string()) +
                " (no file " + index.filename().string() + "): " +
                (other           ? "name " + names
                 : there.empty() ? "train first, or give " + names
                                 : "the newest there is " + there.back().string()));
  }
  return read_whole_file(index);
}

int read_header(const std::string& bytes, const std::filesystem::path& index) {
  proto::BundleHeaderProto header;
  if (!header.ParseFromString(bytes)) damaged(index, "unreadable header");
  if (header.endianness() != proto::BundleHeaderProto::LITTLE)
    throw Error(index.string() +
                " is of a big-endian checkpoint: write it again on a little-endian machine");
  if (header.version().min_consumer() > kFormatVersion)
    throw Error(index.string() + " needs a reader of format version " +
                std::to_string(header.version().min_consumer()) + ", this one knows version " +
                std::to_string(kFormatVersion) + ": save it again with an earlier TensorFlow");
  if (header.num_shards() < 1 || header.num_shards() > kMostShards)
    damaged(index, std::to_string(header.num_shards()) + " shards in the header");
  return header.num_shards();
}

// Product of the dimensions; nothing when one is negative or the product does not fit.
std::optional<std::uint64_t> count_elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(d), &count)) return {};
  return count;
}

// Nothing when the slice does not lie within `shape`.
std::optional<TensorSlice> read_slice(const proto::TensorSliceProto& slice,
                                      const std::vector<std::int64_t>& shape) {
  using Extent = proto::TensorSliceProto::Extent;
  if (slice.extent_size() != static_cast<int>(shape.size())) return {};
  TensorSlice extents;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Extent& extent = slice.extent(static_cast<int>(d));
    if (extent.has_length_case() == Extent::HAS_LENGTH_NOT_SET) {
      extents.push_back({});
      continue;
    }
    if (extent.start() < 0 || extent.length() < 0 || extent.start() > shape[d] ||
        extent.length() > shape[d] - extent.start())
      return {};
    extents.push_back({extent.start(), extent.length()});
  }
  return extents;
}

CheckpointEntry read_entry(const std::string& bytes_of_entry, const std::string& name, int shards,
                           const std::filesystem::path& index) {
  const auto fail = [&](const std::string& what) {
    damaged(index, what + " in the entry of tensor " + name);
  };
  proto::BundleEntryProto bundle;
  if (!bundle.ParseFromString(bytes_of_entry)) fail("unreadable bytes");
  CheckpointEntry entry;
  entry.info.name = name;
  entry.info.type = from_tensorflow(bundle.dtype());
  entry.info.type_name = type_name(bundle.dtype());
  for (const auto& dim : bundle.shape().dim()) entry.info.shape.push_back(dim.size());
  const auto elements = count_elements(entry.info.shape);
  const std::uint64_t size_of_element = element_size(bundle.dtype());
  std::uint64_t bytes = 0;
  if (!elements || bundle.shape().unknown_rank() ||
      __builtin_mul_overflow(*elements, size_of_element, &bytes))
    fail("bad shape");
  entry.elements = *elements;
  for (const auto& proto : bundle.slices()) {
    auto slice = read_slice(proto, entry.info.shape);
    if (!slice) fail("a slice that does not fit the shape");
    entry.slices.push_back(std::move(*slice));
  }
  entry.info.bytes = bytes;
  if (!entry.slices.empty()) return entry;

  if (bundle.size() < 0 || bundle.offset() < 0) fail("negative size or offset");
  entry.info.bytes = static_cast<std::uint64_t>(bundle.size());
  if (size_of_element != 0 && entry.info.bytes != bytes) fail("a size that is not the shape's");
  if (bundle.shard_id() < 0 || bundle.shard_id() >= shards)
    fail("shard " + std::to_string(bundle.shard_id()) + " of " + std::to_string(shards));
  entry.shard = bundle.shard_id();
  entry.offset = static_cast<std::uint64_t>(bundle.offset());
  entry.masked_crc = bundle.crc32c();
  return entry;
}

}  // namespace

CheckpointIndex read_checkpoint_index(const std::filesystem::path& prefix) {
  std::filesystem::path path = prefix;
  path += ".index";
  Table table = decode_table(read_file(prefix, path), path);
  const auto header = table.find("");
  if (header == table.end()) damaged(path, "no header");
  CheckpointIndex index;
  index.shards = read_header(header->second, path);
  table.erase(header);
  for (const auto& [key, value] : table) {
    const std::string name = is_slice_key(key) ? slice_owner(key) : key;
    index.entries.emplace(key, read_entry(value, name, index.shards, path));
  }
  return index;
}

}  // namespace towers::data
