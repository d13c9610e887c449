#pragma once
// Values that are lists: several numbers or names with commas between them.

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/values.h"

namespace towers::cli {

// "1,2,4" to its elements, each read by `read` (text to optional). Nothing where one of them is
// malformed, empty elements included, so that a list has at least one.
template <class Read>
auto read_list(std::string_view text, Read read) {
  using Element = typename decltype(read(text))::value_type;
  std::optional<std::vector<Element>> list(std::in_place);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    auto element = read(text.substr(begin, end - begin));
    if (!element) return std::optional<std::vector<Element>>();
    list->push_back(*std::move(element));
    begin = end + 1;
  }
  return list;
}

// The elements with commas between them.
std::string write_list(const std::vector<std::string>& list);

std::string expected_whole_list(const std::string& lowest, const std::string& highest);
std::string expected_choice_list(const std::vector<std::string>& choices);

// Both limits are allowed values.
template <class Options, std::integral Integer>
Value whole_list(std::vector<Integer> Options::*field, Integer lowest, Integer highest) {
  return bound(
      field, "LIST", expected_whole_list(std::to_string(lowest), std::to_string(highest)),
      [lowest, highest](std::string_view text) {
        return read_list(text,
                         [=](std::string_view one) { return read_whole(one, lowest, highest); });
      },
      [](const std::vector<Integer>& numbers) {
        std::vector<std::string> list;
        for (const Integer number : numbers) list.push_back(std::to_string(number));
        return write_list(list);
      });
}

template <class Options>
Value choice_list(std::vector<std::string> Options::*field,
                  const std::vector<std::string>& choices) {
  Value value = bound(
      field, "NAMES", expected_choice_list(choices),
      [choices](std::string_view text) {
        return read_list(text, [&](std::string_view one) { return read_choice(one, choices); });
      },
      write_list);
  value.choices = choices;
  return value;
}

}  // namespace towers::cli
