#pragma once
// What the fuzz targets share: a folder in memory, and what a reader may do with hostile bytes.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"

namespace towers::fuzz {

// Ends the process, so that the fuzzer keeps the input.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// Hostile bytes may be accepted, or refused by an Error. Whatever else is thrown ends the process.
template <class Use>
void expect_errors_alone(const Use& use) {
  try {
    use();
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) fail("an error without a message");
  }
}

// A folder of this process in memory where there is one, emptied before the first input. The fuzzer
// ends without a chance to remove it: .ci/fuzz does.
inline const std::filesystem::path& folder() {
  static const std::filesystem::path path = [] {
    std::filesystem::path base = "/dev/shm";
    if (::access(base.c_str(), W_OK) != 0) base = std::filesystem::temp_directory_path();
    base /= "towers-fuzz-" + std::to_string(::getpid());
    std::filesystem::remove_all(base);
    std::filesystem::create_directories(base);
    return base;
  }();
  return path;
}

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes up to as many bytes as the number in front of them says (a byte, or two) off `rest`.
inline std::string_view take_piece(std::string_view& rest, int bytes_of_number = 1) {
  std::size_t size = 0;
  for (int i = 0; i < bytes_of_number && !rest.empty(); ++i) {
    size = size << 8 | static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
  }
  const std::string_view piece = rest.substr(0, size);
  rest.remove_prefix(piece.size());
  return piece;
}

}  // namespace towers::fuzz
