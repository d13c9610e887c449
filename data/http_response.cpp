#include "data/http_response.h"

#include <algorithm>
#include <cctype>
#include <charconv>

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
  const char* phrase = "";
  switch (status) {
    case 401:
      phrase = " Unauthorized";
      break;
    case 403:
      phrase = " Forbidden";
      break;
    case 404:
      phrase = " Not Found";
      break;
    case 407:
      phrase = " Proxy Authentication Required";
      break;
    case 410:
      phrase = " Gone";
      break;
    case 429:
      phrase = " Too Many Requests";
      break;
    case 500:
      phrase = " Internal Server Error";
      break;
    case 502:
      phrase = " Bad Gateway";
      break;
    case 503:
      phrase = " Service Unavailable";
      break;
    case 504:
      phrase = " Gateway Timeout";
      break;
    default:
      break;
  }
  return std::to_string(status) + phrase;
}

bool is_transient_status(int status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

}  // namespace towers::data
