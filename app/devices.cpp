// `towers devices`: what there is to train on.

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/setup.h"
#include "cli/console.h"

namespace towers::app {
namespace {

std::string join_names(const std::vector<Device>& devices, bool gpus_alone) {
  std::string names;
  for (const Device& d : devices)
    if (!gpus_alone || d.kind == DeviceKind::gpu)
      names += (names.empty() ? "" : ", ") + short_name(d);
  return names.empty() ? "none" : names;
}

nlohmann::ordered_json to_json(const std::vector<Device>& devices, const char* visible) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Device& d : devices)
    list.push_back({{"name", short_name(d)},
                    {"device", full_name(d)},
                    {"description", d.description},
                    {"threads", d.threads}});
  nlohmann::ordered_json json = {{"devices", list}, {"cuda_visible_devices", nullptr}};
  if (visible != nullptr) json["cuda_visible_devices"] = visible;
  return json;
}

}  // namespace

int run_devices(const cli::DevicesOptions& options) {
  const std::unique_ptr<Backend> backend = make_backend(options);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (options.json) {
    cli::print_line(to_json(backend->devices(), visible).dump());
    return 0;
  }
  cli::print_line("all: " + join_names(backend->devices(), false));
  cli::print_line("gpus: " + join_names(backend->devices(), true));
  std::vector<std::vector<std::string>> rows;
  for (const Device& d : backend->devices())
    rows.push_back({short_name(d), d.description, std::to_string(d.threads)});
  cli::print_line(cli::table({"device", "description", "threads"}, rows));
  cli::print_line(std::string("CUDA_VISIBLE_DEVICES: ") + (visible ? visible : "not set"));
  return 0;
}

}  // namespace towers::app
