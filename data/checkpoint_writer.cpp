#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/checkpoint.h"
#include "data/crc32c.h"
#include "data/file.h"
#include "data/table.h"
#include "data/tensor_type.h"
#include "protos/tensor_bundle.pb.h"

namespace towers::data {
namespace {

constexpr int kProducer = 1;  // version of the format, as TensorFlow's bundle writer says
constexpr std::size_t kWriteChunk =
    65536;  // bytes that stay in the cache between test and checksum

std::filesystem::path with_suffix(std::filesystem::path prefix, const char* suffix) {
  prefix += suffix;
  return prefix;
}

std::uint32_t float_bits(const std::byte* bytes) {
  std::uint32_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits & 0x7fffffffu;  // without the sign
}

constexpr std::uint32_t kInfinity = 0x7f800000u;  // NaNs have larger bits

bool all_finite(std::span<const std::byte> floats) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i + 4 <= floats.size(); i += 4)
    largest = std::max(largest, float_bits(floats.data() + i));
  return largest < kInfinity;
}

// Checksum of a tensor's bytes; a float32 that is not finite is an Error on the way.
std::uint32_t checked_crc(const Tensor& tensor, const std::filesystem::path& path) {
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < tensor.bytes.size(); done += kWriteChunk) {
    const auto chunk =
        tensor.bytes.subspan(done, std::min(kWriteChunk, tensor.bytes.size() - done));
    if (tensor.type == DataType::float32 && !all_finite(chunk)) {
      std::size_t i = 0;
      while (float_bits(chunk.data() + i) < kInfinity) i += 4;
      throw Error(path.string() + " is not written: element " + std::to_string((done + i) / 4) +
                  " of " + tensor.name + " is not finite");
    }
    crc = crc32c(chunk, crc);
  }
  return crc;
}

void check(const Tensor& tensor, const std::filesystem::path& path) {
  std::uint64_t bytes = element_size(to_tensorflow(tensor.type));
  for (const std::int64_t d : tensor.shape) bytes *= static_cast<std::uint64_t>(d);
  if (tensor.name.empty() || tensor.name.front() == '\0' || bytes != tensor.bytes.size())
    throw Error(path.string() + " is not written: tensor \"" + tensor.name + "\" of " +
                std::to_string(tensor.bytes.size()) + " bytes does not fit its shape");
}

std::string header() {
  proto::BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(kProducer);
  return header.SerializeAsString();
}

}  // namespace

void write_checkpoint(const std::filesystem::path& prefix, std::vector<Tensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  AtomicFile data(with_suffix(prefix, ".data-00000-of-00001"));
  AtomicFile index(with_suffix(prefix, ".index"));
  Table table{{"", header()}};
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    check(tensor, prefix);
    proto::BundleEntryProto entry;
    entry.set_dtype(static_cast<proto::DataType>(to_tensorflow(tensor.type)));
    entry.mutable_shape();  // a scalar has an empty shape, not none
    for (const std::int64_t d : tensor.shape) entry.mutable_shape()->add_dim()->set_size(d);
    entry.set_offset(static_cast<std::int64_t>(offset));
    entry.set_size(static_cast<std::int64_t>(tensor.bytes.size()));
    entry.set_crc32c(mask_crc32c(checked_crc(tensor, prefix)));
    if (!table.emplace(tensor.name, entry.SerializeAsString()).second)
      throw Error(prefix.string() + " is not written: two tensors are named " + tensor.name);
    data.write(tensor.bytes);
    offset += tensor.bytes.size();
  }
  index.write(encode_table(table));
  data.sync();
  index.sync();

  // An index of the same name from an earlier run goes first, so that at no moment one lies beside
  // the data of another.
  std::error_code error;
  std::filesystem::remove(index.path(), error);
  if (error) throw_file_error("replace", index.path(), error.value());
  const std::filesystem::path folder = prefix.parent_path();
  try {
    data.rename();
    index.rename();
    sync_folder(folder.empty() ? "." : folder);
  } catch (const Error&) {
    std::filesystem::remove(index.path(), error);
    std::filesystem::remove(data.path(), error);
    throw;
  }
}

}  // namespace towers::data
