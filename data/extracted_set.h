#pragma once
// Where in data_dir the extracted set lies, and whether it is complete.

#include <filesystem>
#include <string>

#include "data/archive_internal.h"

namespace towers::data {

struct ExtractedSet {
  std::filesystem::path folder;  // where it is, or belongs
  bool found = false;            // some of it is there (find_batches_folder)
  std::string problem;  // the first member that is missing or has a wrong size; empty: complete
};

// Nothing is opened.
ExtractedSet find_set(const ArchiveSpec& spec, const std::filesystem::path& data_dir);

}  // namespace towers::data
