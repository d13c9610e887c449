#include "cli/flagfile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/parse.h"
#include "cli/values.h"
#include "core/error.h"

namespace towers::cli {
namespace {

// Far beyond any real use; they end the reading of a wrong file, or of files that name each other
// over and over, at once.
constexpr std::size_t kMostBytes = 1 << 16;
constexpr int kMostFiles = 64;

std::string content_of(const std::string& path) {
  const std::string what = "--flagfile=" + printable(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UsageError(what + ": is a folder");
  // A shell's <(command) is a pipe too, with a writer.
  if (std::filesystem::is_fifo(path, ignored) && !path.starts_with("/dev/"))
    throw UsageError(what + ": is a pipe, which may be waited for in vain; name a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(what + ": cannot be read: " + std::strerror(errno));
  std::string content(kMostBytes + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad()) throw UsageError(what + ": cannot be read: " + std::strerror(errno));
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() > kMostBytes) throw UsageError(what + ": too long for a file of flags");
  // What editors of Windows put before the text, invisible in every message.
  if (content.starts_with("\xef\xbb\xbf")) content.erase(0, 3);
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff"))
    throw UsageError(what + ": is UTF-16; save it as UTF-8");
  return content;
}

std::string trimmed(const std::string& line) {
  static constexpr auto blanks = " \t\r\v\f";
  const auto begin = line.find_first_not_of(blanks);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(blanks) + 1 - begin);
}

// "--name value" to "--name=value".
std::string with_equals(std::string line) {
  const auto end = line.find_first_of(" \t=");
  if (end == std::string::npos || line[end] == '=' || line[0] != '-') return line;
  return line.substr(0, end) + "=" + trimmed(line.substr(end));
}

}  // namespace

void FlagfileReader::read(const std::string& path,
                          const std::function<void(const std::string&)>& use) {
  std::error_code ignored;
  const std::string name = std::filesystem::weakly_canonical(path, ignored).string();
  if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
    throw UsageError("--flagfile=" + printable(path) + ": this file is being read already");
  }
  if (++files_ > kMostFiles) {
    throw UsageError("--flagfile=" + printable(path) + ": more than " + std::to_string(kMostFiles) +
                     " files of flags");
  }
  std::istringstream lines(content_of(path));
  open_.push_back(name);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line);
    if (line.empty() || line.starts_with('#') || line.starts_with("//")) continue;
    try {
      use(with_equals(line));
    } catch (const UsageError& error) {
      throw UsageError(printable(path) + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  open_.pop_back();
}

std::string with_flag(std::string_view flagfile, std::string_view name, std::string_view value) {
  const std::string start = "--" + std::string(name) + "=";
  const std::string wanted = start + std::string(value) + "\n";
  std::istringstream lines{std::string(flagfile)};
  std::string result, line;
  bool found = false;
  while (std::getline(lines, line)) {
    if (!line.starts_with(start)) {
      result += line + "\n";
    } else if (!found) {
      result += wanted;
      found = true;
    }
  }
  return found ? result : result + wanted;
}

std::string without_flag(std::string_view flagfile, std::string_view name) {
  const std::string start = "--" + std::string(name) + "=";
  std::istringstream lines{std::string(flagfile)};
  std::string result;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(start)) result += line + "\n";
  return result;
}

}  // namespace towers::cli
