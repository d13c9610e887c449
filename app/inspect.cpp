// `towers inspect`: what a checkpoint holds.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/commands.h"
#include "cli/console.h"
#include "core/error.h"
#include "data/checkpoint.h"

namespace towers::app {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::int64_t d : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(d);
  return text + "]";
}

// A prefix, the .index or a .data file, or a folder with a `checkpoint` file.
std::filesystem::path resolve_prefix(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    const std::filesystem::path latest = data::read_checkpoint_state(path).latest;
    if (latest.empty()) throw Error(path.string() + ": No checkpoint file found");
    return latest;
  }
  const std::string name = path.filename().string();
  for (const char* mark : {".index", ".data-"})
    if (const std::size_t at = name.rfind(mark); at != std::string::npos)
      return path.parent_path() / name.substr(0, at);
  return path;
}

struct Row {
  const data::TensorInfo* info;
  bool readable;  // as float32
  double norm;    // L2
};

Row read_row(const data::CheckpointReader& reader, const data::TensorInfo& info) {
  using data::DataType;
  const bool readable = info.type != DataType::other && info.type != DataType::bfloat16 &&
                        info.type != DataType::float16;
  if (!readable) return {&info, false, 0};
  std::size_t size = 1;
  for (std::int64_t d : info.shape) size *= static_cast<std::size_t>(d);
  std::vector<float> values(size);
  reader.read(info.name, values);
  double squares = 0;
  for (float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  return {&info, true, std::sqrt(squares)};
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void print_json(const std::filesystem::path& prefix, const std::vector<Row>& rows) {
  // A program that reads the name must find the file by it.
  if (!is_utf8(prefix.string()))
    throw Error("--json: the name " + prefix.string() +
                " is not UTF-8, as JSON must be; reach it by a link with another name");
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    tensors.push_back({{"name", row.info->name},
                       {"dtype", row.info->type_name},
                       {"shape", row.info->shape},
                       {"bytes", row.info->bytes}});
    if (row.readable) tensors.back()["norm"] = row.norm;  // null where it is not finite
  }
  const nlohmann::ordered_json json = {{"checkpoint", prefix.string()}, {"tensors", tensors}};
  cli::print_line(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const std::filesystem::path& prefix, const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells;
  std::uint64_t bytes = 0;
  for (const Row& row : rows) {
    bytes += row.info->bytes;
    cells.push_back({cli::one_line(row.info->name), row.info->type_name,
                     shape_text(row.info->shape), row.readable ? number(row.norm) : "not read"});
  }
  cli::print_line(cli::table({"tensor", "type", "shape", "L2 norm"}, cells));
  cli::print_line(cli::one_line(prefix.string()) + ": " + std::to_string(rows.size()) +
                  " tensors, " + cli::human_bytes(bytes) + ", all checksums right");
}

}  // namespace

int run_inspect(const cli::InspectOptions& options) {
  const std::filesystem::path prefix = resolve_prefix(options.path);
  const data::CheckpointReader reader(prefix);
  std::vector<Row> rows;
  for (const data::TensorInfo& info : reader.tensors()) rows.push_back(read_row(reader, info));
  if (options.json)
    print_json(prefix, rows);
  else
    print_table(prefix, rows);
  return 0;
}

}  // namespace towers::app
