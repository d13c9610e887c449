#include "cli/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "cli/format.h"

namespace towers::cli {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// std::from_chars knows no leading plus; one is fine before a digit or a point.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class Number>
std::optional<Number> from_text(std::string_view text) {
  text = without_plus(text);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

}  // namespace

std::optional<bool> read_boolean(std::string_view text) {
  static constexpr std::array<std::string_view, 6> yes{"true", "t", "yes", "y", "on", "1"};
  static constexpr std::array<std::string_view, 6> no{"false", "f", "no", "n", "off", "0"};
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), lower);
  if (std::find(yes.begin(), yes.end(), word) != yes.end()) return true;
  if (std::find(no.begin(), no.end(), word) != no.end()) return false;
  return {};
}

std::optional<std::int64_t> read_signed(std::string_view text) {
  return from_text<std::int64_t>(text);
}

std::optional<std::uint64_t> read_unsigned(std::string_view text) {
  return from_text<std::uint64_t>(text);
}

std::optional<double> read_real(std::string_view text) {
  const auto number = from_text<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::string> read_text(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), is_control)) return {};
  if (!text.empty() && (text.front() == ' ' || text.back() == ' ')) return {};
  return std::string(text);
}

std::string write_real(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 120;
  const std::string result = one_line(std::string(text.substr(0, longest)));
  return text.size() > longest ? result + "..." : result;
}

std::string expected_whole(const std::string& lowest, const std::string& highest) {
  // Other ways to write one, such as 1e3 and 0x10, are not taken.
  return "a whole number in plain digits, " +
         (highest.empty() ? lowest + " or more" : lowest + " to " + highest);
}

std::string expected_real(const RealRange& range) {
  const std::string lowest = write_real(range.lowest);
  if (std::isfinite(range.highest)) {
    return (range.lowest_allowed ? "a number from " + lowest
                                 : "a number above " + lowest + " and up") +
           " to " + write_real(range.highest);
  }
  return range.lowest_allowed ? "a number, " + lowest + " or more" : "a number above " + lowest;
}

std::optional<double> read_real(std::string_view text, const RealRange& range) {
  const auto number = read_real(text);
  if (!number || *number < range.lowest || *number > range.highest) return {};
  if (!range.lowest_allowed && *number == range.lowest) return {};
  return number;
}

std::string expected_choice(const std::vector<std::string>& choices) {
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) list += i + 1 == choices.size() ? " or " : ", ";
    list += choices[i];
  }
  return list;
}

std::optional<std::string> read_choice(std::string_view text,
                                       const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

}  // namespace towers::cli
