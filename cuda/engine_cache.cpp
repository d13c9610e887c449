#include "cuda/engine_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace towers::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "towers: fastest cuDNN engines, 1";
constexpr std::uintmax_t kLargestFile = 1 << 20;  // a thousand times what a user's GPUs fill

// The folder that an environment variable names. XDG's rules leave out relative ones.
fs::path folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  const fs::path folder = value != nullptr ? value : "";
  return folder.is_absolute() ? folder : fs::path();
}

bool is_text(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) return false;
  return true;
}

// All of `text`, also on the disk; 0 or errno.
int write_and_sync(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

// Whole or not at all; 0 or errno.
int replace_file(const fs::path& file, std::string_view text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return error.value();
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return errno;
  int failed = write_and_sync(descriptor, text);
  if (::close(descriptor) != 0 && failed == 0) failed = errno;
  if (failed == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) failed = errno;
  if (failed != 0) ::unlink(temporary.c_str());
  return failed;
}

}  // namespace

fs::path engine_cache_file() {
  fs::path folder = folder_of("XDG_CACHE_HOME");
  if (folder.empty()) {
    folder = folder_of("HOME");
    if (folder.empty()) return {};
    folder /= ".cache";
  }
  return folder / "towers" / "cudnn_engines";
}

EngineCache::EngineCache(fs::path file, void (*debug)(const std::string& line),
                         void (*warning)(const std::string& line))
    : file_(std::move(file)), debug_(debug), warning_(warning) {}

void EngineCache::say(const std::string& line) const {
  if (debug_ != nullptr) debug_(line);
}

void EngineCache::warn(const std::string& line) {
  if (warned_.insert(line).second && warning_ != nullptr) warning_(line);
}

std::optional<std::string> EngineCache::find(const std::string& key) {
  if (!read_) read();
  const auto found = engines_.find(key);
  if (found == engines_.end()) return std::nullopt;
  return found->second;
}

void EngineCache::keep(const std::string& key, const std::string& engine) {
  if (!is_text(key) || !is_text(engine)) return say("an engine's name is not kept: " + engine);
  read();
  engines_[key] = engine;
  write();
}

// What is known already stays: this process timed it, or read it when the file was as good.
void EngineCache::read() {
  read_ = true;
  foreign_ = false;
  std::error_code error;
  if (file_.empty() || !fs::exists(file_, error)) return;
  const std::uintmax_t size = fs::file_size(file_, error);  // fails for what is no file
  foreign_ = error || size > kLargestFile;
  std::ifstream in(file_, std::ios::binary);
  std::string text;
  if (!foreign_) text.assign(std::istreambuf_iterator<char>(in), {});
  if (!foreign_ && text.empty() && size == 0)
    return say(file_.string() + " is empty: written anew");
  std::string_view rest = text;
  const auto next_line = [&]() -> std::optional<std::string_view> {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return line;
  };
  if (next_line() != kFirstLine) {
    foreign_ = true;
    return say(file_.string() + " is not a list of engines of this version: left alone");
  }
  bool whole = true;
  while (const std::optional<std::string_view> line = next_line()) {
    const std::size_t tab = line->find('\t');
    const std::string_view key = line->substr(0, tab);
    const std::string_view engine =
        tab == std::string_view::npos ? std::string_view() : line->substr(tab + 1);
    if (is_text(key) && is_text(engine))
      engines_.emplace(key, engine);
    else
      whole = false;
  }
  if (!whole || !rest.empty())
    say(file_.string() + " is damaged: engines that are missing are timed again");
}

void EngineCache::write() const {
  if (file_.empty() || foreign_) return;
  std::string text = std::string(kFirstLine) + '\n';
  for (const auto& [key, engine] : engines_) text += key + '\t' + engine + '\n';
  if (const int failed = replace_file(file_, text); failed != 0)
    say("engines are not kept in " + file_.string() + ": " + std::strerror(failed));
}

}  // namespace towers::cuda
