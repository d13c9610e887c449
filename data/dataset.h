#pragma once
// A labelled set of images in memory: CIFAR-10's files, or a procedural set of the same layout.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/batches_folder.h"

namespace towers::data {

constexpr int kImageSide = 32;
constexpr int kImageBytes = 3 * kImageSide * kImageSide;  // R, G and B planes, row-major
constexpr int kRecordBytes = 1 + kImageBytes;             // label first
constexpr int kClasses = 10;
constexpr int kTrainExamples = 50000;
constexpr int kTestExamples = 10000;

enum class Split { train, test };

struct Dataset {
  std::string description;            // "cifar10 from DIR", "synthetic"
  std::vector<std::uint8_t> records;  // size() records of kRecordBytes, in file order

  std::size_t size() const { return records.size() / kRecordBytes; }
  const std::uint8_t* record(std::size_t i) const { return &records[i * kRecordBytes]; }
  int label(std::size_t i) const { return *record(i); }
  const std::uint8_t* image(std::size_t i) const { return record(i) + 1; }
};

// Reads and validates one split (length of each file, range of each label).
// Throws Error naming the file, the record and what was found, and what to do.
Dataset load_cifar10(const std::filesystem::path& data_dir, Split split);

// 50,000 or 10,000 procedural images of 10 classes: learnable, not trivial, the same everywhere.
// `seed` makes the whole set; train and test examples of one seed follow one distribution.
Dataset make_synthetic(Split split, std::uint64_t seed = 0);

// airplane, automobile, ...
const std::array<const char*, kClasses>& class_names();

// As the set's batches.meta.txt has them, one a line; those above where there is no such file.
// Throws Error naming the file where it does not hold a name for each class.
std::vector<std::string> class_names_of(const std::filesystem::path& data_dir);

}  // namespace towers::data
