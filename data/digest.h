#pragma once
// The digest of a file.

#include <filesystem>
#include <string>

namespace towers::data {

// 64 lower-case hexadecimal digits. Throws Error with path and reason when the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace towers::data
