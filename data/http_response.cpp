#include "data/http_response.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace towers::data {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (value.size() < kUnit.size() || !equal_ignoring_case(value.substr(0, kUnit.size()), kUnit))
    return {};
  value.remove_prefix(kUnit.size());
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view range = trimmed(value.substr(0, slash));
  const std::string_view size = trimmed(value.substr(slash + 1));
  ContentRange result;
  if (size != "*") {
    result.total = parse_number<std::uint64_t>(size);
    if (!result.total) return {};
  }
  if (range == "*") {
    result.unsatisfied = true;
    return result;
  }
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first = parse_number<std::uint64_t>(range.substr(0, dash));
  const auto last = parse_number<std::uint64_t>(range.substr(dash + 1));
  if (!first || !last || *last < *first || (result.total && *last >= *result.total)) return {};
  result.first = *first;
  result.last = *last;
  return result;
}

void ResponseHead::add_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos)
      status = parse_number<int>(line.substr(space + 1, 3)).value_or(0);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equal_ignoring_case(name, "etag")) etag = value;
  if (equal_ignoring_case(name, "last-modified")) last_modified = value;
  if (equal_ignoring_case(name, "content-type")) content_type = value;
  if (equal_ignoring_case(name, "content-range")) content_range = parse_content_range(value);
}

std::string ResponseHead::strong_etag() const {
  return etag.starts_with('"') ? etag : "";
}

std::string describe_status(int status) {
  constexpr std::pair<int, const char*> kPhrases[] = {
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {407, "Proxy Authentication Required (give name and password in http_proxy or https_proxy)"},
      {410, "Gone"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  };
  for (const auto& [known, phrase] : kPhrases)
    if (known == status) return std::to_string(status) + " " + phrase;
  return std::to_string(status);
}

bool is_transient_status(int status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

}  // namespace towers::data
