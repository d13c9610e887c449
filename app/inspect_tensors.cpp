// A listing of the tensors of a checkpoint or a safetensors file.

#include <cmath>
#include <optional>
#include <vector>

#include "app/inspect.h"
#include "app/json_text.h"
#include "cli/console.h"
#include "core/error.h"

namespace towers::app {
namespace {

struct Row {
  const data::TensorInfo* info = nullptr;
  std::optional<double> norm;  // L2; not of types that are not read
  std::string fault;
};

Row read_row(const data::TensorReader& reader, const data::TensorInfo& info) {
  if (info.type == data::DataType::other) return {&info, {}, ""};
  try {
    double squares = 0;
    for (double v : read_values(reader, info)) squares += v * v;
    return {&info, std::sqrt(squares), ""};
  } catch (const Error& error) {
    return {&info, {}, error.what()};
  }
}

std::optional<std::int64_t> step_of(const TensorFile& file) {
  const data::TensorInfo* info = file.reader->find("global_step");
  if (info == nullptr || info->type == data::DataType::other) return {};
  try {
    const std::vector<double> values = read_values(*file.reader, *info);
    if (values.size() == 1 && std::abs(values[0]) < 1e18)
      return static_cast<std::int64_t>(values[0]);
  } catch (const Error&) {  // its row tells
  }
  return {};
}

std::uint64_t bytes_of(const std::vector<Row>& rows) {
  std::uint64_t bytes = 0;
  for (const Row& row : rows) bytes += row.info->bytes;
  return bytes;
}

void print_json(const TensorFile& file, const std::vector<Row>& rows, bool damaged) {
  Json tensors = Json::array();
  for (const Row& row : rows) {
    tensors.push_back({{"name", row.info->name},
                       {"dtype", row.info->type_name},
                       {"shape", row.info->shape},
                       {"bytes", row.info->bytes}});
    if (row.norm) tensors.back()["norm"] = *row.norm;  // null where it is not finite
    if (!row.fault.empty()) tensors.back()["error"] = row.fault;
  }
  Json json = {{"checkpoint", named(file.name)}};
  if (const auto step = step_of(file)) json["global_step"] = *step;
  json["bytes"] = bytes_of(rows);
  json["damaged"] = damaged;
  json["tensors"] = tensors;
  print(json);
}

void print_table(const TensorFile& file, const std::vector<Row>& rows, bool damaged) {
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows)
    cells.push_back({cli::one_line(row.info->name), row.info->type_name,
                     shape_text(row.info->shape),
                     !row.fault.empty() ? "damaged"
                     : row.norm         ? short_number(*row.norm)
                                        : "not read"});
  cli::print_line(cli::table({"tensor", "type", "shape", "L2 norm"}, cells));
  std::string line = cli::one_line(file.name) + ": " + std::to_string(rows.size()) + " tensors, " +
                     cli::human_bytes(bytes_of(rows));
  if (const auto step = step_of(file)) line += ", global_step " + std::to_string(*step);
  if (file.reader->has_checksums())
    line += damaged ? ", not all checksums right" : ", all checksums right";
  cli::print_line(line);
}

}  // namespace

void inspect_tensors(const TensorFile& file, bool json) {
  std::vector<Row> rows;
  std::string fault;  // the first
  int faults = 0;
  for (const data::TensorInfo& info : file.reader->tensors()) {
    rows.push_back(read_row(*file.reader, info));
    if (rows.back().fault.empty()) continue;
    if (++faults == 1) fault = rows.back().fault;
  }
  if (json)
    print_json(file, rows, faults > 0);
  else
    print_table(file, rows, faults > 0);
  if (faults > 1) fault += " (" + std::to_string(faults - 1) + " more tensors are damaged)";
  if (faults > 0) throw Error(fault);
}

}  // namespace towers::app
