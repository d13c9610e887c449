#include "data/dataset.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "core/error.h"
#include "data/batches_folder.h"
#include "data/file.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordsPerFile = 10000;
constexpr std::size_t kFileBytes = kRecordsPerFile * kRecordBytes;

// Length and kind are tested for all files before any is read, so that a mistake shows at once.
void check_file(const fs::path& file, const std::string& remedy) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found)
    throw Error(file.string() + " is missing; " + remedy);
  if (error) throw Error(file.string() + " cannot be read: " + error.message());
  if (!fs::is_regular_file(status))
    throw Error(file.string() + " is not a regular file; " + remedy);
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error) throw Error(file.string() + " cannot be read: " + error.message());
  if (bytes == kFileBytes) return;

  const std::string expected = "; expected " + std::to_string(kFileBytes) + " bytes (" +
                               std::to_string(kRecordsPerFile) + " records of " +
                               std::to_string(kRecordBytes) + "); " + remedy;
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
                  "; the file is damaged or not CIFAR-10: " + remedy);
  }
}

}  // namespace

Dataset load_cifar10(const fs::path& data_dir, Split split) {
  const fs::path folder = find_batches_folder(data_dir);
  if (folder.empty()) {
    refuse_misplaced_data(data_dir);
    throw Error(missing_batches(data_dir) + "; " + download_hint(data_dir) +
                ", or give the folder that holds it with --data_dir");
  }
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  const fs::path named = absolute.has_filename() ? absolute : absolute.parent_path();
  // A set with a gap is not fetched over: the whole folder has to go first.
  const std::string remedy =
      "delete " + folder.string() + " and " +
      download_hint(named.filename() == kBatchesFolder ? named.parent_path() : data_dir);
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

std::vector<std::string> class_names_of(const fs::path& data_dir) {
  const fs::path folder = find_batches_folder(data_dir);
  const fs::path file = folder / "batches.meta.txt";
  std::error_code error;
  if (folder.empty() || !fs::exists(file, error))
    return {class_names().begin(), class_names().end()};
  std::vector<std::string> names;
  std::istringstream lines(read_whole_file(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != kClasses)
    throw Error(file.string() + " holds " + std::to_string(names.size()) + " names of classes, " +
                std::to_string(kClasses) + " are expected; delete it to use the usual names");
  return names;
}

}  // namespace towers::data
