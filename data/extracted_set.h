#pragma once
// Where in data_dir the extracted set lies, and whether it is complete.

#include <filesystem>
#include <string>

#include "data/archive_internal.h"

namespace towers::data {

// What of the set lies in a folder.
struct ExtractedSet {
  std::filesystem::path folder;
  int files = 0;        // required members there, of whatever size
  std::string problem;  // the first one that is missing or has a wrong size; empty: complete
};

// The set in data_dir/spec.folder, else in data_dir itself where that holds any of it (as
// find_batches_folder, but of any archive, and with sizes). Nothing is opened.
ExtractedSet find_set(const ArchiveSpec& spec, const std::filesystem::path& data_dir);

// For a data_dir without the set: throws Error when it is a file, holds the pickle version, or when
// the set lies one level above or below, so that this is said rather than the set fetched again.
void refuse_misplaced(const ArchiveSpec& spec, const std::filesystem::path& data_dir);

}  // namespace towers::data
