#include "app/checkpoint_path.h"

#include <string>

#include "core/error.h"
#include "data/checkpoint.h"

namespace towers::app {

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    const std::filesystem::path latest = data::read_checkpoint_state(path).latest;
    if (latest.empty())
      throw Error("No checkpoint file found in " + path.string() +
                  "; train first, or name the folder of a run, or a checkpoint");
    return latest;
  }
  const std::string name = path.filename().string();
  for (const char* mark : {".index", ".data-"})
    if (const std::size_t at = name.rfind(mark); at != std::string::npos)
      return path.parent_path() / name.substr(0, at);
  return path;
}

}  // namespace towers::app
