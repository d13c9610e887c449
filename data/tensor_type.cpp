#include "data/tensor_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "protos/types.pb.h"

namespace towers::data {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

struct TypeFacts {
  int number;
  std::size_t size;
  const char* name;
  DataType type;
};

constexpr std::array kTypes{
    TypeFacts{proto::DT_FLOAT, 4, "float32", DataType::float32},
    TypeFacts{proto::DT_DOUBLE, 8, "float64", DataType::float64},
    TypeFacts{proto::DT_INT32, 4, "int32", DataType::int32},
    TypeFacts{proto::DT_INT64, 8, "int64", DataType::int64},
    TypeFacts{proto::DT_BFLOAT16, 2, "bfloat16", DataType::bfloat16},
    TypeFacts{proto::DT_HALF, 2, "float16", DataType::float16},
    TypeFacts{proto::DT_UINT8, 1, "uint8", DataType::other},
    TypeFacts{proto::DT_INT16, 2, "int16", DataType::other},
    TypeFacts{proto::DT_INT8, 1, "int8", DataType::other},
    TypeFacts{proto::DT_STRING, 0, "string", DataType::other},
    TypeFacts{proto::DT_COMPLEX64, 8, "complex64", DataType::other},
    TypeFacts{proto::DT_BOOL, 1, "bool", DataType::other},
    TypeFacts{proto::DT_QINT8, 1, "qint8", DataType::other},
    TypeFacts{proto::DT_QUINT8, 1, "quint8", DataType::other},
    TypeFacts{proto::DT_QINT32, 4, "qint32", DataType::other},
    TypeFacts{proto::DT_QINT16, 2, "qint16", DataType::other},
    TypeFacts{proto::DT_QUINT16, 2, "quint16", DataType::other},
    TypeFacts{proto::DT_UINT16, 2, "uint16", DataType::other},
    TypeFacts{proto::DT_COMPLEX128, 16, "complex128", DataType::other},
    TypeFacts{proto::DT_RESOURCE, 0, "resource", DataType::other},
    TypeFacts{proto::DT_VARIANT, 0, "variant", DataType::other},
    TypeFacts{proto::DT_UINT32, 4, "uint32", DataType::other},
    TypeFacts{proto::DT_UINT64, 8, "uint64", DataType::other},
};

constexpr TypeFacts kUnknown{proto::DT_INVALID, 0, "an unknown type", DataType::other};

const TypeFacts& facts(int tf_type) {
  for (const TypeFacts& t : kTypes)
    if (t.number == tf_type) return t;
  return kUnknown;
}

// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
float float_from_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  float magnitude = 0;
  if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  else if (exponent == 31)
    magnitude = fraction == 0 ? HUGE_VALF : std::nanf("");
  else
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (half >> 15) != 0 ? -magnitude : magnitude;
}

float float_from_bfloat16(std::uint16_t high) {
  return std::bit_cast<float>(std::uint32_t{high} << 16);
}

template <typename Element, typename Value, typename Convert>
void convert(std::span<const std::byte> bytes, std::span<Value> out, Convert to_value) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Element element;
    std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
    out[i] = to_value(element);
  }
}

template <typename Value>
void convert_all(DataType type, std::span<const std::byte> bytes, std::span<Value> out) {
  const auto round = [](auto element) { return static_cast<Value>(element); };
  switch (type) {
    case DataType::float32:
      return convert<float>(bytes, out, round);
    case DataType::float64:
      return convert<double>(bytes, out, round);
    case DataType::int32:
      return convert<std::int32_t>(bytes, out, round);
    case DataType::int64:
      return convert<std::int64_t>(bytes, out, round);
    case DataType::float16:
      return convert<std::uint16_t>(bytes, out, float_from_half);
    case DataType::bfloat16:
      return convert<std::uint16_t>(bytes, out, float_from_bfloat16);
    case DataType::other:
      break;
  }
  throw std::invalid_argument("a tensor of a type that is not read");
}

}  // namespace

std::size_t element_size(int tf_type) {
  return facts(tf_type).size;
}

const char* type_name(int tf_type) {
  return facts(tf_type).name;
}

DataType from_tensorflow(int tf_type) {
  return facts(tf_type).type;
}

int to_tensorflow(DataType type) {
  for (const TypeFacts& t : kTypes)
    if (t.type == type && type != DataType::other) return t.number;
  throw std::invalid_argument("a tensor of a type that is not written");
}

void convert_values(DataType type, std::span<const std::byte> bytes, std::span<float> out) {
  convert_all(type, bytes, out);
}
void convert_values(DataType type, std::span<const std::byte> bytes, std::span<double> out) {
  convert_all(type, bytes, out);
}

}  // namespace towers::data
