#include "data/dataset.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "core/error.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "cifar-10-batches-bin";
constexpr std::size_t kRecordsPerFile = 10000;
constexpr std::size_t kFileBytes = kRecordsPerFile * kRecordBytes;
constexpr std::array kTrainFiles = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin"};
constexpr std::array kTestFiles = {"test_batch.bin"};

// fs::exists and its like throw on a folder that may not be entered; here that is a "no".
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool holds_batches(const fs::path& folder) {
  const auto here = [&](const char* name) { return is_there(folder / name); };
  return std::any_of(kTrainFiles.begin(), kTrainFiles.end(), here) ||
         std::any_of(kTestFiles.begin(), kTestFiles.end(), here);
}

// In the words of the command line, since that is where the user can act.
std::string download_hint(const fs::path& data_dir) {
  return "run `towers download --data_dir=" + data_dir.string() + "`";
}

// Other things that people have in the place of the binary version.
struct Mistaken {
  const char* folder;  // as its archive names it
  const char* file;    // one of its files
  const char* what;
};
constexpr Mistaken kMistaken[] = {
    {"cifar-10-batches-py", "data_batch_1", "the Python (pickle) version of CIFAR-10"},
    {"cifar-10-batches-mat", "data_batch_1.mat", "the Matlab version of CIFAR-10"},
    {"cifar-100-binary", "train.bin", "CIFAR-100"},
    {"cifar-100-python", "train", "CIFAR-100 in its Python (pickle) version"},
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

// Why data_dir has no batches folder, and what to do instead.
[[noreturn]] void fail_without_batches(const fs::path& data_dir) {
  const std::string where = "data_dir " + data_dir.string();
  std::error_code error;
  const fs::file_status status = fs::status(data_dir, error);
  std::string what;
  if (status.type() == fs::file_type::not_found) {
    what = where + " does not exist";
  } else if (!error && !fs::is_directory(status)) {
    what = where + " is not a folder";
  } else {
    require_readable_folder(data_dir);
    for (const Mistaken& m : kMistaken)
      if (is_there(data_dir / m.folder) || is_there(data_dir / m.file))
        throw Error(where + " holds " + m.what + "; the binary version of CIFAR-10 is needed (" +
                    kFolder + "): " + download_hint(data_dir));
    what = where + " holds no " + kFolder;
    if (is_there(data_dir / kFolder)) {
      require_readable_folder(data_dir / kFolder);
      what = (data_dir / kFolder).string() + " holds no data_batch_1.bin and no test_batch.bin";
    }
  }
  const fs::path meant = nearby_data_dir(data_dir);
  if (!meant.empty())
    throw Error(what + ", but " + meant.string() +
                " holds the data: use --data_dir=" + meant.string());
  throw Error(what + "; " + download_hint(data_dir) +
              ", or give the folder that holds it with --data_dir");
}

// Length and kind are tested for all files before any is read, so that a mistake shows at once.
void check_file(const fs::path& file, const std::string& remedy) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found)
    throw Error(file.string() + " is missing; to have it back, " + remedy);
  if (error) throw Error(file.string() + " cannot be read: " + error.message());
  if (!fs::is_regular_file(status))
    throw Error(file.string() + " is not a regular file; remove it and " + remedy);
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error) throw Error(file.string() + " cannot be read: " + error.message());
  if (bytes == kFileBytes) return;

  const std::string expected = "; expected " + std::to_string(kFileBytes) + " bytes (" +
                               std::to_string(kRecordsPerFile) + " records of " +
                               std::to_string(kRecordBytes) + "); delete it and " + remedy;
  if (bytes == 0) throw Error(file.string() + " is empty" + expected);
  std::string found = file.string() + " has " + std::to_string(bytes) + " bytes, ";
  if (bytes % kRecordBytes == 0)
    found += std::to_string(bytes / kRecordBytes) + " records";
  else
    found += "no multiple of a record's " + std::to_string(kRecordBytes);
  throw Error(found + expected);
}

void read_file(const fs::path& file, std::uint8_t* out) {
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> in(std::fopen(file.c_str(), "rb"), close);
  if (!in)
    throw Error(file.string() + " cannot be opened: " + std::strerror(errno) +
                "; check its permissions");
  errno = 0;
  const std::size_t got = std::fread(out, 1, kFileBytes, in.get());
  if (got != kFileBytes)
    throw Error(file.string() + ": read " + std::to_string(got) + " of " +
                std::to_string(kFileBytes) + " bytes" +
                (errno != 0 ? std::string(": ") + std::strerror(errno)
                            : std::string("; is something writing to it?")));
}

void check_labels(const fs::path& file, const std::uint8_t* records, const std::string& remedy) {
  for (std::size_t i = 0; i < kRecordsPerFile; ++i) {
    const int label = records[i * kRecordBytes];
    if (label >= kClasses)
      throw Error(file.string() + ": record " + std::to_string(i) + " (of 0 to " +
                  std::to_string(kRecordsPerFile - 1) + ") has label " + std::to_string(label) +
                  ", expected 0 to " + std::to_string(kClasses - 1) +
                  "; the file is damaged or not CIFAR-10: delete it and " + remedy);
  }
}

}  // namespace

fs::path find_batches_folder(const fs::path& data_dir) {
  if (holds_batches(data_dir / kFolder)) return data_dir / kFolder;
  if (holds_batches(data_dir)) return data_dir;
  return {};
}

Dataset load_cifar10(const fs::path& data_dir, Split split) {
  const fs::path folder = find_batches_folder(data_dir);
  if (folder.empty()) fail_without_batches(data_dir);
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  const fs::path named = absolute.has_filename() ? absolute : absolute.parent_path();
  const std::string remedy =
      download_hint(named.filename() == kFolder ? named.parent_path() : data_dir);
  std::vector<fs::path> files;
  if (split == Split::train)
    for (const char* name : kTrainFiles) files.push_back(folder / name);
  else
    for (const char* name : kTestFiles) files.push_back(folder / name);
  for (const fs::path& file : files) check_file(file, remedy);

  Dataset dataset;
  dataset.description = "cifar10 from " + folder.string();
  dataset.records.resize(files.size() * kFileBytes);
  std::uint8_t* out = dataset.records.data();
  for (const fs::path& file : files) {
    read_file(file, out);
    check_labels(file, out, remedy);
    out += kFileBytes;
  }
  return dataset;
}

const std::array<const char*, kClasses>& class_names() {
  static constexpr std::array<const char*, kClasses> names = {
      "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return names;
}

}  // namespace towers::data
