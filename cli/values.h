#pragma once
// The kinds of value that a flag takes: how each is read, checked, described and written.

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"

namespace towers::cli {

// Text to value; nothing for text that is not wholly one. The locale does not matter.
std::optional<bool> read_boolean(std::string_view text);  // true t yes y on 1 or false f no n off 0
std::optional<std::int64_t> read_signed(std::string_view text);     // decimal digits and a sign
std::optional<std::uint64_t> read_unsigned(std::string_view text);  // decimal digits
std::optional<double> read_real(std::string_view text);             // finite: 0.1, 1e-4, -.5
// Words, paths, addresses: no control characters and no blank at either end, so that a flagfile can
// hold it on a line.
std::optional<std::string> read_text(std::string_view text);

// The shortest text that read_real turns into the same number.
std::string write_real(double value);

// `text` fit for a one-line message: control characters replaced, long text cut.
std::string printable(std::string_view text);

// One kind of value, bound to a field of a command's options.
struct Value {
  bool boolean = false;
  std::string placeholder;           // N in --batch_size=N
  std::string expected;              // completes "expected ..."
  std::vector<std::string> choices;  // all allowed words, or elements, where there are few
  std::string default_text;          // what --help shows; empty: nothing
  // False: not such a value, nothing is changed. The options must be of the bound kind.
  std::function<bool(CommonOptions&, std::string_view)> set;
  // Nothing where the flag has no value, or none of its own.
  std::function<std::optional<std::string>(const CommonOptions&)> get;
};

// read: text to optional of the field's type, with every check; write: the field to optional text.
template <class Options, class Field, class Read, class Write>
Value bound(Field Options::*field, std::string placeholder, std::string expected, Read read,
            Write write) {
  Value value;
  value.placeholder = std::move(placeholder);
  value.expected = std::move(expected);
  value.set = [field, read](CommonOptions& options, std::string_view text) {
    auto result = read(text);
    if (!result) return false;
    static_cast<Options&>(options).*field = *std::move(result);
    return true;
  };
  value.get = [field, write](const CommonOptions& options) -> std::optional<std::string> {
    return write(static_cast<const Options&>(options).*field);
  };
  value.default_text = value.get(Options{}).value_or("");
  return value;
}

template <class Options>
Value boolean(bool Options::*field) {
  Value value = bound(field, "", "true or false", read_boolean,
                      [](bool on) { return std::string(on ? "true" : "false"); });
  value.boolean = true;
  return value;
}

std::string expected_whole(const std::string& lowest, const std::string& highest);

// Both limits are allowed values.
template <std::integral Integer>
std::optional<Integer> read_whole(std::string_view text, Integer lowest, Integer highest) {
  const auto number = [text] {
    if constexpr (std::is_signed_v<Integer>)
      return read_signed(text);
    else
      return read_unsigned(text);
  }();
  if (!number || std::cmp_less(*number, lowest) || std::cmp_greater(*number, highest)) return {};
  return static_cast<Integer>(*number);
}

// Field: an integer type, or std::optional of one for a flag that may be left unset.
template <class Options, class Field, std::integral Integer>
Value whole(Field Options::*field, Integer lowest,
            Integer highest = std::numeric_limits<Integer>::max()) {
  // The largest signed number is no limit that anybody meets.
  const bool limited = highest != std::numeric_limits<Integer>::max() || !std::is_signed_v<Integer>;
  return bound(
      field, "N",
      expected_whole(std::to_string(lowest), limited ? std::to_string(highest) : std::string()),
      [lowest, highest](std::string_view text) { return read_whole(text, lowest, highest); },
      [](const std::optional<Integer>& number) -> std::optional<std::string> {
        return number ? std::optional(std::to_string(*number)) : std::nullopt;
      });
}

struct RealRange {
  double lowest = 0;
  double highest = std::numeric_limits<double>::infinity();
  bool lowest_allowed = true;
};

std::string expected_real(const RealRange& range);
std::optional<double> read_real(std::string_view text, const RealRange& range);

template <class Options>
Value real(double Options::*field, const RealRange& range = {}) {
  return bound(
      field, "X", expected_real(range),
      [range](std::string_view text) { return read_real(text, range); }, write_real);
}

std::string expected_choice(const std::vector<std::string>& choices);
std::optional<std::string> read_choice(std::string_view text,
                                       const std::vector<std::string>& choices);

template <class Options>
Value choice(std::string Options::*field, const std::vector<std::string>& choices) {
  Value value = bound(
      field, "NAME", expected_choice(choices),
      [choices](std::string_view text) { return read_choice(text, choices); },
      [](const std::string& text) { return text; });
  value.choices = choices;
  return value;
}

// allowed: a further check of the text.
template <class Options>
Value text(std::string Options::*field, const std::string& placeholder, const std::string& expected,
           std::function<bool(std::string_view)> allowed) {
  return bound(
      field, placeholder, expected,
      [allowed](std::string_view given) {
        auto read = read_text(given);
        return read && allowed(*read) ? read : std::nullopt;
      },
      [](const std::string& text) { return text; });
}

}  // namespace towers::cli
