#include "tests/reference/safetensors.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace towers::reference {

Safetensors::Safetensors(const std::filesystem::path& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  data_.assign(std::istreambuf_iterator<char>(file), {});
  std::uint64_t length = 0;
  if (data_.size() < sizeof length)
    throw std::runtime_error(path.string() + ": no safetensors file");
  std::memcpy(&length, data_.data(), sizeof length);
  if (length > data_.size() - sizeof length)
    throw std::runtime_error(path.string() + ": the header is cut");
  const std::size_t first = sizeof length + static_cast<std::size_t>(length);
  const nlohmann::json header =
      nlohmann::json::parse(data_.data() + sizeof length, data_.data() + first);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    Entry entry{value.at("dtype").get<std::string>(),
                value.at("shape").get<std::vector<std::size_t>>(),
                first + value.at("data_offsets").at(0).get<std::size_t>(),
                first + value.at("data_offsets").at(1).get<std::size_t>()};
    if (entry.begin > entry.end || entry.end > data_.size())
      throw std::runtime_error(path.string() + ": " + name + " is cut");
    entries_.emplace(name, std::move(entry));
  }
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw std::runtime_error(path_.string() + ": no tensor " + name);
  return found->second;
}

const std::vector<std::size_t>& Safetensors::shape(const std::string& name) const {
  return entry(name).shape;
}

template <class T>
std::vector<T> Safetensors::values(const std::string& name, const std::string& type) const {
  const Entry& e = entry(name);
  if (e.type != type)
    throw std::runtime_error(path_.string() + ": " + name + " is " + e.type + ", not " + type);
  std::vector<T> values((e.end - e.begin) / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), data_.data() + e.begin, values.size() * sizeof(T));
  return values;
}

std::vector<float> Safetensors::floats(const std::string& name) const {
  return values<float>(name, "F32");
}
std::vector<std::int32_t> Safetensors::integers(const std::string& name) const {
  return values<std::int32_t>(name, "I32");
}
std::vector<std::uint8_t> Safetensors::bytes(const std::string& name) const {
  return values<std::uint8_t>(name, "U8");
}

}  // namespace towers::reference
