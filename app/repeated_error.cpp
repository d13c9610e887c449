#include "app/repeated_error.h"

#include <bit>
#include <utility>

namespace towers::app {
namespace {

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

std::string RepeatedError::line_for(const std::string& error) {
  const std::string kind = without_digits(error);
  if (error.empty()) recovered_ = count_ > 0;
  count_ = error.empty() ? 0 : kind == kind_ ? count_ + 1 : 1;
  kind_ = kind;
  if (count_ <= 1) return error;
  return std::has_single_bit(count_)
             ? "still so, " + std::to_string(count_) + " times by now: " + error
             : std::string();
}

bool RepeatedError::recovered() {
  return std::exchange(recovered_, false);
}

}  // namespace towers::app
