#include "data/extracted_set.h"

#include <sys/stat.h>

namespace towers::data {
namespace {

namespace fs = std::filesystem;

ExtractedSet look_at(const ArchiveSpec& spec, const fs::path& folder) {
  ExtractedSet result{folder, 0, {}};
  for (const ArchiveMember& member : spec.members) {
    if (!member.required) continue;
    const fs::path path = folder / member.name;
    struct stat status {};
    const bool there = ::stat(path.c_str(), &status) == 0;
    if (there) ++result.files;
    if (!result.problem.empty()) continue;
    if (!there)
      result.problem = path.string() + " is missing";
    else if (!S_ISREG(status.st_mode))
      result.problem = path.string() + " is not a file";
    else if (static_cast<std::uint64_t>(status.st_size) != member.bytes)
      result.problem = path.string() + " has " + std::to_string(status.st_size) +
                       " bytes instead of " + std::to_string(member.bytes);
  }
  return result;
}

bool complete(const ArchiveSpec& spec, const fs::path& data_dir) {
  return find_set(spec, data_dir).problem.empty();
}

}  // namespace

ExtractedSet find_set(const ArchiveSpec& spec, const fs::path& data_dir) {
  ExtractedSet inside = look_at(spec, data_dir / spec.folder);
  if (inside.files > 0) return inside;
  ExtractedSet itself = look_at(spec, data_dir);
  return itself.files > 0 ? itself : inside;
}

void refuse_misplaced(const ArchiveSpec& spec, const fs::path& data_dir) {
  std::error_code error;
  const fs::file_status status = fs::status(data_dir, error);
  if (fs::exists(status) && !fs::is_directory(status))
    throw Error(data_dir.string() + " is a file: --data_dir must be the folder that holds " +
                spec.folder);
  fs::path here = fs::weakly_canonical(fs::absolute(data_dir), error);
  if (!here.has_filename()) here = here.parent_path();
  if (!error && complete(spec, here.parent_path()))
    throw Error(data_dir.string() +
                " is one level too deep: use --data_dir=" + here.parent_path().string());
  for (fs::directory_iterator entry(data_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (complete(spec, entry->path()))
      throw Error(data_dir.string() +
                  " is one level too high: use --data_dir=" + entry->path().string());
  }
  for (const fs::path& pickled : {data_dir / "cifar-10-batches-py", data_dir})
    if (fs::is_regular_file(pickled / "data_batch_1", error))
      throw Error(pickled.string() +
                  " holds the Python (pickle) version of CIFAR-10, which is not read here: use "
                  "another --data_dir, and the binary version is fetched to it");
}

}  // namespace towers::data
