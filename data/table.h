#pragma once
// Sorted tables of byte strings in LevelDB's table format (its doc/table_format.md), whole in
// memory: the .index file of a checkpoint holds a few kilobytes.

#include <filesystem>
#include <map>
#include <string>

namespace towers::data {

using Table = std::map<std::string, std::string>;

// The bytes of the file, laid out as TensorFlow does: not compressed, blocks of 256 KiB.
std::string encode_table(const Table& table);

// Every block's checksum is verified. Throws Error naming `path` (for messages alone) and the
// fault.
Table decode_table(const std::string& bytes, const std::filesystem::path& path);

}  // namespace towers::data
