#include "cluster/waiting.h"

#include <cstdio>

namespace towers::cluster {
namespace {

constexpr double kFirstLine = 2;  // those who start together need none
constexpr double kNextLine = 10;
constexpr std::size_t kListed = 8;

}  // namespace

std::string seconds_text(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string list_of(const std::vector<std::string>& items, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i == kListed) return text + " and " + std::to_string(items.size() - i) + " more";
    text += (i == 0 ? "" : between) + items[i];
  }
  return text;
}

std::string list_of(const std::vector<Missing>& missing) {
  std::vector<std::string> items;
  for (const Missing& m : missing) items.push_back(m.who + ": " + m.cause);
  return list_of(items, "; ");
}

std::string Waiting::look(double now, const std::vector<Missing>& missing) {
  if (missing.empty()) {
    since_.reset();
    return "";
  }
  if (!since_) {
    since_ = now;
    next_line_ = now + kFirstLine;
  }
  if (now < next_line_) return "";
  next_line_ = now + kNextLine;
  return self_ + " waits for " + list_of(missing);
}

}  // namespace towers::cluster
