#include "cli/nearest.h"

#include <algorithm>
#include <cstddef>

namespace towers::cli {
namespace {

std::string plain(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c == '-') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// "lr" for "learning_rate".
std::string initials(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') result += name[i];
  }
  return result;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table for a's prefixes of i - 2, i - 1 and i characters.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 64;  // no name is that long: bounds the time on any input
  if (word.size() > longest) return "";
  const std::string wanted = plain(word);
  const int near = std::max(2, static_cast<int>(wanted.size()) / 3);
  int best = near + 1;
  std::string result;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(wanted, plain(candidate));
    const bool part = wanted.size() >= 3 && candidate.find(wanted) != std::string::npos;
    const bool short_form = wanted.size() >= 2 && initials(candidate) == wanted;
    if (part || short_form) distance = std::min(distance, 2);
    // Two edits of a word of two or three letters leave nothing of it.
    if (distance >= static_cast<int>(std::max(wanted.size(), candidate.size()))) continue;
    if (distance < best) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

}  // namespace towers::cli
