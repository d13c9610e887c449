#include "data/safetensors_header.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace towers::data {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::uint64_t kLargestSize = (1ULL << 62) - 1;  // of a dimension or a place

// Called by the parser for each part of the text, in order. Returning false is not needed: what is
// wrong ends in an Error. The names of functions and their arguments are the parser's.
class Reader final : public Json::json_sax_t {
 public:
  SafetensorsHeader header;

  bool null() override { return refuse(); }
  bool boolean(bool) override { return refuse(); }
  bool number_integer(number_integer_t) override { return refuse(); }  // a negative one
  bool number_float(number_float_t, const string_t&) override { return refuse(); }
  bool binary(binary_t&) override { return refuse(); }

  bool number_unsigned(number_unsigned_t number) override {
    if (place_ == Place::shape && number <= kLargestSize)
      entry_.shape.push_back(static_cast<std::int64_t>(number));
    else if (place_ == Place::offsets && number <= kLargestSize && offsets_ < 2)
      (offsets_++ == 0 ? entry_.begin : entry_.end) = number;
    else
      refuse();
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata)
      header.metadata[key_] = std::move(text);
    else if (place_ == Place::tensor && key_ == "dtype" && entry_.type.empty())
      entry_.type = std::move(text);
    else
      refuse();
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      place_ = key_ == kMetadata ? Place::metadata : Place::tensor;
      if (place_ == Place::metadata) return true;
      name_ = key_;
      entry_ = {};
      has_shape_ = false;
      offsets_ = 0;
    } else {
      refuse();
    }
    return true;
  }

  bool key(string_t& text) override {
    key_ = std::move(text);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      if (entry_.type.empty() || !has_shape_ || offsets_ != 2) refuse();
      if (!header.tensors.emplace(name_, std::move(entry_)).second)
        throw Error("it holds tensor " + name_ + " twice");
    }
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::tensor && key_ == "shape" && !has_shape_) {
      has_shape_ = true;
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets" && offsets_ == 0) {
      place_ = Place::offsets;
    } else {
      refuse();
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    throw Error("its header is not a JSON object");
  }

 private:
  enum class Place { outside, header, metadata, tensor, shape, offsets };

  // For what does not belong where it stands.
  bool refuse() const {
    switch (place_) {
      case Place::outside:
        throw Error("its header is not a JSON object");
      case Place::metadata:
        throw Error("its __metadata__ holds more than texts");
      case Place::header:
        if (key_ == kMetadata) throw Error("its __metadata__ is not an object");
        throw Error("the entry of tensor " + key_ + " is malformed");
      default:
        throw Error("the entry of tensor " + name_ + " is malformed");
    }
  }

  Place place_ = Place::outside;
  std::string key_, name_;  // the last one, and that of the tensor
  SafetensorsEntry entry_;
  bool has_shape_ = false;
  int offsets_ = 0;  // that have come
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  Reader reader;
  Json::sax_parse(text, &reader);
  return std::move(reader.header);
}

}  // namespace towers::data
