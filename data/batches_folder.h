#pragma once
// Where CIFAR-10's binary batches lie below --data_dir, and what people have there instead.

#include <array>
#include <filesystem>
#include <string>

namespace towers::data {

inline constexpr const char* kBatchesFolder = "cifar-10-batches-bin";
inline constexpr std::array kTrainFiles = {"data_batch_1.bin", "data_batch_2.bin",
                                           "data_batch_3.bin", "data_batch_4.bin",
                                           "data_batch_5.bin"};
inline constexpr std::array kTestFiles = {"test_batch.bin"};

// The folder with the .bin files: data_dir/cifar-10-batches-bin, or data_dir itself when it holds
// them (any of them: a set with a gap is still the one that is meant). Empty when neither does.
std::filesystem::path find_batches_folder(const std::filesystem::path& data_dir);

// Does nothing when find_batches_folder finds one. Throws Error where data_dir, though without
// batches, shows what went wrong: it cannot be read, it holds another version of the data (pickle,
// Matlab, CIFAR-100), or the batches lie a level below or up to two above; the message names the
// data_dir to use. To be called before a download, which would fetch what is there already.
void refuse_misplaced_data(const std::filesystem::path& data_dir);

// "data_dir DIR does not exist" and the like, for a data_dir without batches. Throws as above where
// it cannot be read.
std::string missing_batches(const std::filesystem::path& data_dir);

// "run `towers download --data_dir=DIR`": the words of the command line, where the user can act.
std::string download_hint(const std::filesystem::path& data_dir);

}  // namespace towers::data
