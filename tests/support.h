#pragma once
// Small things that many tests need.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace towers::test {

// The folder with TensorFlow's own values, or an empty path.
inline std::filesystem::path shared_dir() {
  if (const char* dir = std::getenv("TOWERS_SHARED")) return dir;
  const std::filesystem::path beside =
      std::filesystem::path(TOWERS_SOURCE_DIR).parent_path() / "shared";
  return std::filesystem::exists(beside / "golden") ? beside : std::filesystem::path();
}

// Sanitizers bring an operator new of their own, so tests cannot replace it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TOWERS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TOWERS_SANITIZED 1
#endif
#endif

// ctest shows a test that prints this as skipped.
inline void skip(const std::string& reason) {
  std::cout << "skipped: " << reason << std::endl;
}

// A number of the environment, for runs that are longer on request.
inline int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// A new empty folder, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "towers-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace towers::test
