#include "app/json_text.h"

#include "cli/console.h"
#include "core/error.h"

namespace towers::app {

std::string named(const std::string& path) {
  try {
    (void)Json(path).dump();
  } catch (const Json::type_error&) {
    throw Error("--json: the name " + path +
                " is not UTF-8, as JSON must be; reach it by a link with another name");
  }
  return path;
}

void print(const Json& json) {
  cli::print_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace towers::app
