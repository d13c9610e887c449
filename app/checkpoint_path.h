#pragma once
// Which checkpoint a person means.

#include <filesystem>

namespace towers::app {

// The prefix meant by a prefix, its .index or a .data file, or a folder with a `checkpoint` file
// (the latest one). Error where the folder has none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

}  // namespace towers::app
