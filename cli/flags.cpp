#include "cli/flags.h"

#include <algorithm>

#include "cli/flag_rows.h"

namespace towers::cli {

const std::vector<Flag>& flags() {
  static const std::vector<Flag> rows = [] {
    std::vector<Flag> all;
    for (auto& group : {run_flags(), linear_flags(), cluster_flags(), exchange_flags(),
                        evaluation_flags(), data_flags(), optimization_flags(), device_flags(),
                        output_flags(), bench_flags(), general_flags()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return rows;
}

std::string_view title(Group group) {
  switch (group) {
    case Group::run:
      return "Run";
    case Group::cluster:
      return "Several processes";
    case Group::sweep:
      return "Sweep: each combination of these lists is measured";
    case Group::data:
      return "Data";
    case Group::optimization:
      return "Optimization";
    case Group::devices:
      return "Devices";
    case Group::output:
      return "Output";
    case Group::evaluation:
      return "Evaluation";
    case Group::exchange:
      return "Export and import";
    case Group::general:
      return "General";
  }
  return "";
}

const Flag* find_flag(std::string_view name) {
  const auto& rows = flags();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [name](const Flag& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace towers::cli
