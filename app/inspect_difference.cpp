// Two checkpoints side by side.

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "app/inspect.h"
#include "app/json_text.h"
#include "cli/console.h"
#include "core/error.h"

namespace towers::app {
namespace {

struct Difference {
  std::string name;
  std::string what;       // "only in the first", "values", ...
  std::string fault{};    // of one that is damaged
  bool measured = false;  // of values: the rest is set
  double largest = 0;     // of |a - b|
  double norm = 0;        // L2 of a - b
  double relative = 0;    // that over the L2 norm of a
};

Difference compare_values(const TensorFile& a, const TensorFile& b, const data::TensorInfo& info_a,
                          const data::TensorInfo& info_b) {
  Difference difference{.name = info_a.name, .what = ""};
  std::vector<double> x, y;
  try {
    x = read_values(*a.reader, info_a);
    y = read_values(*b.reader, info_b);
  } catch (const Error& error) {
    difference.what = "damaged";
    difference.fault = error.what();
    return difference;
  }
  double squares = 0, squares_a = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::abs(x[i] - y[i]);
    difference.what = "values";
    // A NaN on one side is no number to be the largest; it must not go unseen.
    if (std::isnan(d) || d > difference.largest) difference.largest = d;
    squares += d * d;
  }
  for (double v : x) squares_a += v * v;
  difference.measured = true;
  difference.norm = std::sqrt(squares);
  difference.relative = squares == 0 ? 0 : std::sqrt(squares / squares_a);
  return difference;
}

// `what` is empty where there is none.
Difference compare(const TensorFile& a, const TensorFile& b, const std::string& name) {
  const data::TensorInfo* in_a = a.reader->find(name);
  const data::TensorInfo* in_b = b.reader->find(name);
  if (in_a == nullptr) return {.name = name, .what = "only in the second"};
  if (in_b == nullptr) return {.name = name, .what = "only in the first"};
  if (in_a->shape != in_b->shape)
    return {.name = name,
            .what = "shape " + shape_text(in_a->shape) + " and " + shape_text(in_b->shape)};
  if (in_a->type == data::DataType::other || in_b->type == data::DataType::other)
    return {.name = name, .what = "of a type that is not read"};
  Difference difference = compare_values(a, b, *in_a, *in_b);
  // Not by name: safetensors' F32 is a checkpoint's float32.
  if (difference.what.empty() && in_a->type != in_b->type)
    difference.what = "type " + in_a->type_name + " and " + in_b->type_name;
  return difference;
}

void print_json(const TensorFile& a, const TensorFile& b, std::size_t tensors,
                const std::vector<Difference>& found) {
  Json list = Json::array();
  for (const Difference& d : found) {
    list.push_back({{"name", d.name}, {"difference", d.what}});
    if (!d.fault.empty()) list.back()["error"] = d.fault;
    if (!d.measured) continue;
    list.back()["largest"] = d.largest;
    list.back()["norm"] = d.norm;
    list.back()["relative"] = d.relative;
  }
  print({{"first", named(a.name)},
         {"second", named(b.name)},
         {"equal", found.empty()},
         {"tensors", tensors},
         {"differences", list}});
}

void print_table(const TensorFile& a, const TensorFile& b, std::size_t tensors,
                 const std::vector<Difference>& found) {
  if (!found.empty()) {
    std::vector<std::vector<std::string>> cells;
    for (const Difference& d : found) {
      cells.push_back({cli::one_line(d.name), d.what});
      if (d.measured)
        for (double value : {d.largest, d.norm, d.relative})
          cells.back().push_back(short_number(value));
    }
    cli::print_line(cli::table({"tensor", "differs in", "largest", "L2 norm", "relative"}, cells));
  }
  cli::print_line(cli::one_line(a.name) + " and " + cli::one_line(b.name) + ": " +
                  std::to_string(tensors - found.size()) + " of " + std::to_string(tensors) +
                  " tensors are equal");
}

}  // namespace

void inspect_difference(const TensorFile& a, const TensorFile& b, bool json) {
  std::set<std::string> names;
  for (const TensorFile* file : {&a, &b})
    for (const data::TensorInfo& info : file->reader->tensors()) names.insert(info.name);
  std::vector<Difference> found;
  for (const std::string& name : names)
    if (Difference d = compare(a, b, name); !d.what.empty()) found.push_back(std::move(d));
  if (json)
    print_json(a, b, names.size(), found);
  else
    print_table(a, b, names.size(), found);
  for (const Difference& d : found)
    if (!d.fault.empty()) throw Error(d.fault);
}

}  // namespace towers::app
