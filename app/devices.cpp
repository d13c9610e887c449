// `towers devices`: what there is to train on.

#include "app/backend_choice.h"
#include "app/commands.h"
#include "app/json_text.h"
#include "cli/console.h"
#include "core/error.h"
#include "cuda/visible_devices.h"

namespace towers::app {
namespace {

struct Listing {
  std::vector<Device> cpus, gpus;
  std::string why_no_gpus;  // empty where there are some, or none were asked for
};

Listing list_devices(const cli::DevicesOptions& options, const cuda::Surroundings& surroundings) {
  Listing listing;
  listing.cpus = make_cpu_backend(options)->devices();
  if (options.device == "cpu") return listing;
  const cuda::Loaded loaded = load_gpu_backend(options, surroundings);
  if (loaded.backend) listing.gpus = loaded.backend->devices();
  if (loaded.reason) listing.why_no_gpus = loaded.reason->text;
  if (options.device == "gpu" && listing.gpus.empty())
    throw Error("--device=gpu: " + listing.why_no_gpus);
  return listing;
}

std::string join_names(const std::vector<Device>& devices) {
  std::string names;
  for (const Device& d : devices) names += (names.empty() ? "" : ", ") + short_name(d);
  return names.empty() ? "none" : names;
}

Json to_json(const Device& d) {
  Json json = {{"name", short_name(d)},
               {"device", full_name(d)},
               {"index", d.index},
               {"description", d.description}};
  if (d.kind == DeviceKind::cpu) {
    json["threads"] = d.threads;
  } else {
    json["compute_capability"] = d.compute_capability;
    json["memory_free"] = d.memory_free;
    json["memory_total"] = d.memory_total;
    json["pci_bus_id"] = d.pci_bus_id;
    json["uuid"] = d.uuid;
  }
  return json;
}

Json to_json(const Listing& listing, const cuda::Surroundings& surroundings) {
  Json list = Json::array();
  for (const Device& d : listing.cpus) list.push_back(to_json(d));
  for (const Device& d : listing.gpus) list.push_back(to_json(d));
  Json json = {{"devices", list}, {"cuda_visible_devices", nullptr}, {"why_no_gpus", nullptr}};
  if (surroundings.visible_devices) json["cuda_visible_devices"] = *surroundings.visible_devices;
  if (!listing.why_no_gpus.empty()) json["why_no_gpus"] = listing.why_no_gpus;
  return json;
}

std::string cpu_table(const std::vector<Device>& cpus) {
  std::vector<std::vector<std::string>> rows;
  for (const Device& d : cpus)
    rows.push_back({short_name(d), d.description, std::to_string(d.threads)});
  return cli::table({"device", "description", "threads"}, rows);
}

std::string gpu_table(const std::vector<Device>& gpus) {
  std::vector<std::vector<std::string>> rows;
  for (const Device& d : gpus)
    rows.push_back({short_name(d), d.description, d.compute_capability,
                    cli::human_bytes(d.memory_free), cli::human_bytes(d.memory_total), d.pci_bus_id,
                    d.uuid});
  return cli::table({"device", "name", "capability", "memory free", "in all", "PCI bus", "UUID"},
                    rows);
}

}  // namespace

int run_devices(const cli::DevicesOptions& options) {
  const cuda::Surroundings surroundings = cuda::look_around();
  const Listing listing = list_devices(options, surroundings);
  if (options.json) {
    print(to_json(listing, surroundings));
    return 0;
  }
  std::vector<Device> all = listing.cpus;
  all.insert(all.end(), listing.gpus.begin(), listing.gpus.end());
  cli::print_line("all: " + join_names(all));
  cli::print_line("gpus: " + join_names(listing.gpus));
  cli::print_line(cpu_table(listing.cpus));
  if (!listing.gpus.empty()) cli::print_line(gpu_table(listing.gpus));
  if (!listing.why_no_gpus.empty()) cli::print_line("no GPU: " + listing.why_no_gpus);
  cli::print_line(cuda::describe_visible_devices(surroundings.visible_devices));
  return 0;
}

}  // namespace towers::app
