#include "data/extracted_set.h"

#include <sys/stat.h>

#include "data/batches_folder.h"

namespace towers::data {
namespace {

// What is wrong with a member's file; empty: nothing.
std::string problem_of(const std::filesystem::path& path, std::uint64_t bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return path.string() + " is missing";
  if (!S_ISREG(status.st_mode)) return path.string() + " is not a file";
  if (static_cast<std::uint64_t>(status.st_size) == bytes) return {};
  return path.string() + " has " + std::to_string(status.st_size) + " bytes instead of " +
         std::to_string(bytes);
}

}  // namespace

ExtractedSet find_set(const ArchiveSpec& spec, const std::filesystem::path& data_dir) {
  ExtractedSet set;
  set.folder = find_batches_folder(data_dir);
  set.found = !set.folder.empty();
  if (!set.found) set.folder = data_dir / spec.folder;
  for (const ArchiveMember& member : spec.members)
    if (member.required && set.problem.empty())
      set.problem = problem_of(set.folder / member.name, member.bytes);
  return set;
}

}  // namespace towers::data
