#include "data/batches_folder.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

// fs::exists throws on a folder that may not be entered; here that is a "no".
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool holds_batches(const fs::path& folder) {
  const auto here = [&](const char* name) { return is_there(folder / name); };
  return std::any_of(kTrainFiles.begin(), kTrainFiles.end(), here) ||
         std::any_of(kTestFiles.begin(), kTestFiles.end(), here);
}

// Other things that people have in the place of the binary version.
struct OtherVersion {
  const char* folder;  // as its archive names it
  const char* file;    // one of its files, with a name that little else has
  const char* what;
};
constexpr OtherVersion kOtherVersions[] = {
    {"cifar-10-batches-py", "data_batch_1", "the Python (pickle) version of CIFAR-10"},
    {"cifar-10-batches-mat", "data_batch_1.mat", "the Matlab version of CIFAR-10"},
    {"cifar-100-binary", "fine_label_names.txt", "CIFAR-100"},
};

// The value of --data_dir that was probably meant: a folder below or above the one given. Empty
// when there is none.
fs::path nearby_data_dir(const fs::path& data_dir) {
  std::error_code error;
  int looked_at = 0;
  for (fs::directory_iterator entry(data_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!find_batches_folder(entry->path()).empty()) return entry->path();
    if (++looked_at == 1000) break;  // a folder of many thousands: an answer in time matters more
  }
  fs::path above = fs::absolute(data_dir, error).lexically_normal();
  if (!above.has_filename()) above = above.parent_path();
  for (int level = 0; level < 2 && above != above.root_path(); ++level) {
    above = above.parent_path();
    if (!find_batches_folder(above).empty()) return above;
  }
  return {};
}

void require_readable_folder(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator names(folder, error);
  // A folder that may be listed but not entered hides what lies in it just as well.
  if (!error && fs::status(folder / kTestFiles.front(), error).type() == fs::file_type::not_found)
    error.clear();
  if (error)
    throw Error(folder.string() + " cannot be read: " + error.message() +
                "; check the permissions of it and of the folders above it");
}

}  // namespace

std::string download_hint(const fs::path& data_dir) {
  return "run `towers download --data_dir=" + data_dir.string() + "`";
}

fs::path find_batches_folder(const fs::path& data_dir) {
  if (holds_batches(data_dir / kBatchesFolder)) return data_dir / kBatchesFolder;
  if (holds_batches(data_dir)) return data_dir;
  return {};
}

std::string missing_batches(const fs::path& data_dir) {
  const std::string where = "data_dir " + data_dir.string();
  std::error_code error;
  const fs::file_status status = fs::status(data_dir, error);
  if (status.type() == fs::file_type::not_found) return where + " does not exist";
  if (!error && !fs::is_directory(status)) return where + " is not a folder";
  require_readable_folder(data_dir);
  const fs::path folder = data_dir / kBatchesFolder;
  if (!is_there(folder)) return where + " holds no " + kBatchesFolder;
  require_readable_folder(folder);
  return folder.string() + " holds no data_batch_1.bin and no test_batch.bin";
}

void refuse_misplaced_data(const fs::path& data_dir) {
  if (!find_batches_folder(data_dir).empty()) return;
  const std::string missing = missing_batches(data_dir);
  for (const OtherVersion& other : kOtherVersions)
    if (is_there(data_dir / other.folder) || is_there(data_dir / other.file))
      throw Error(
          "data_dir " + data_dir.string() + " holds " + other.what +
          "; the binary version of CIFAR-10 (" + kBatchesFolder +
          ") is needed: give another --data_dir, where it is or where it may be fetched to");
  const fs::path meant = nearby_data_dir(data_dir);
  if (!meant.empty())
    throw Error(missing + ", but " + meant.string() +
                " holds the data: use --data_dir=" + meant.string());
}

}  // namespace towers::data
