#include "data/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.h"
#include "data/file.h"
#include "data/safetensors_header.h"
#include "data/tensor_type.h"

namespace towers::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadataKey = "__metadata__";

struct TypeName {
  const char* name;
  DataType type;
  std::uint64_t size;
};
constexpr TypeName kTypeNames[] = {
    {"F32", DataType::float32, 4},   {"F64", DataType::float64, 8},
    {"F16", DataType::float16, 2},   {"BF16", DataType::bfloat16, 2},
    {"I32", DataType::int32, 4},     {"I64", DataType::int64, 8},
    {"BOOL", DataType::other, 1},    {"U8", DataType::other, 1},
    {"I8", DataType::other, 1},      {"I16", DataType::other, 2},
    {"U16", DataType::other, 2},     {"U32", DataType::other, 4},
    {"U64", DataType::other, 8},     {"F8_E5M2", DataType::other, 1},
    {"F8_E4M3", DataType::other, 1},
};

std::string name_of(DataType type) {
  for (const TypeName& known : kTypeNames)
    if (known.type == type && type != DataType::other) return known.name;
  throw std::invalid_argument("a tensor of a type that is not written");
}

// Nothing where the product does not fit.
std::optional<std::uint64_t> product(const std::vector<std::int64_t>& shape, std::uint64_t size) {
  for (const std::int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(size, static_cast<std::uint64_t>(d), &size)) return {};
  return size;
}

std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                       const Metadata& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = dump(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the tensors are aligned
  const std::uint64_t length = text.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const Tensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

class SafetensorsReader::Impl {
 public:
  explicit Impl(const std::filesystem::path& path) : path_(path), file_(open_to_read(path)) {
    const std::uint64_t size = file_size(file_, path_);
    std::uint64_t length = 0;
    if (size < kLengthBytes) fail("it is too short");
    read_at(file_, path_, 0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kLongestHeader || length > size - kLengthBytes)
      fail("its first 8 bytes do not tell the length of a header");
    std::string text(static_cast<std::size_t>(length), '\0');
    read_at(file_, path_, kLengthBytes, std::as_writable_bytes(std::span(text)));
    data_begin_ = kLengthBytes + length;
    SafetensorsHeader header;
    try {
      header = parse_safetensors_header(text);
    } catch (const Error& error) {
      fail(error.what());
    }
    metadata_ = std::move(header.metadata);
    for (auto& [name, entry] : header.tensors) add_tensor(name, std::move(entry));
    check_places(size - data_begin_);
    for (const auto& [name, entry] : entries_) tensors_.push_back(entry.info);
  }

  std::string source() const { return path_.string(); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }

  const TensorInfo* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.info;
  }

  template <typename Value>
  void read(const std::string& name, std::span<Value> out) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw Error("there is no tensor " + name + " in " + source());
    const Entry& entry = found->second;
    if (entry.info.type == DataType::other || product(entry.info.shape, 1) != out.size())
      fail("tensor " + name + " of type " + entry.info.type_name + " and " +
           std::to_string(entry.info.bytes) + " bytes cannot be read as " +
           std::to_string(out.size()) + " numbers");
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.info.bytes));
    read_at(file_, path_, data_begin_ + entry.begin, bytes);
    convert_values(entry.info.type, bytes, out);
  }

 private:
  struct Entry {
    TensorInfo info;
    std::uint64_t begin = 0;  // behind the header
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path_.string() + " is not a whole safetensors file: " + what +
                "; use another file, or copy this one again");
  }

  void add_tensor(const std::string& name, SafetensorsEntry&& from) {
    Entry entry;
    entry.info.name = name;
    entry.info.type = DataType::other;
    entry.info.type_name = std::move(from.type);
    entry.info.shape = std::move(from.shape);
    entry.begin = from.begin;
    if (from.end < from.begin) fail("tensor " + name + " ends before it begins");
    entry.info.bytes = from.end - from.begin;
    for (const TypeName& known : kTypeNames) {
      if (entry.info.type_name != known.name) continue;
      entry.info.type = known.type;
      if (product(entry.info.shape, known.size) != entry.info.bytes)
        fail("the shape of tensor " + name + " does not fit its " +
             std::to_string(entry.info.bytes) + " bytes");
    }
    entries_.emplace(name, std::move(entry));
  }

  // The tensors' places, one after the other, make up all that is behind the header.
  void check_places(std::uint64_t size) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (const auto& [name, entry] : entries_)
      places.emplace_back(entry.begin, entry.begin + entry.info.bytes);
    std::sort(places.begin(), places.end());
    std::uint64_t at = 0;
    for (const auto& [begin, end] : places) {
      if (begin != at) fail("its tensors overlap or leave a gap at byte " + std::to_string(at));
      at = end;
    }
    if (at != size)
      fail("its tensors take " + std::to_string(at) + " bytes, and " + std::to_string(size) +
           " are there");
  }

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;
};

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(path)) {}
SafetensorsReader::~SafetensorsReader() = default;

std::string SafetensorsReader::source() const {
  return impl_->source();
}
const std::vector<TensorInfo>& SafetensorsReader::tensors() const {
  return impl_->tensors();
}
const TensorInfo* SafetensorsReader::find(const std::string& name) const {
  return impl_->find(name);
}
void SafetensorsReader::read(const std::string& name, std::span<float> out) const {
  impl_->read(name, out);
}
void SafetensorsReader::read(const std::string& name, std::span<double> out) const {
  impl_->read(name, out);
}
const Metadata& SafetensorsReader::metadata() const {
  return impl_->metadata();
}

}  // namespace towers::data
