#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "cli/console.h"
#include "cli/screen.h"

namespace towers::cli {
namespace {

// "towers: warning: "; nothing for info.
class Prefix : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& destination) override {
    if (message.level == spdlog::level::info) return;
    for (const std::string_view part : {std::string_view("towers: "), name(message.level)}) {
      destination.append(part.data(), part.data() + part.size());
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<Prefix>();
  }

 private:
  static std::string_view name(spdlog::level::level_enum level) {
    if (level == spdlog::level::debug) return "debug: ";
    return level == spdlog::level::warn ? "warning: " : "error: ";
  }
};

spdlog::logger& logger() {
  static const auto instance = [] {
    const bool plain = std::getenv("NO_COLOR") != nullptr && *std::getenv("NO_COLOR") != '\0';
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
        plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
    auto made = std::make_shared<spdlog::logger>("towers", sink);
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<Prefix>('*').set_pattern("%^%*%$%v");
    made->set_formatter(std::move(formatter));
    // Nowhere to report that stderr does not take lines.
    made->set_error_handler([](const std::string&) {});
    return made;
  }();
  return *instance;
}

void log(spdlog::level::level_enum level, const std::string& line) {
  if (!logger().should_log(level)) return;
  Screen screen;
  logger().log(level, "{}", one_line(line));
}

}  // namespace

void set_log_level(const std::string& level, bool quiet) {
  using spdlog::level::level_enum;
  static const std::array<std::pair<const char*, level_enum>, 5> levels{
      {{"debug", level_enum::debug},
       {"info", level_enum::info},
       {"warning", level_enum::warn},
       {"error", level_enum::err},
       {"off", level_enum::off}}};
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [&level](const auto& pair) { return level == pair.first; });
  if (found == levels.end()) throw std::invalid_argument("no log level " + level);
  logger().set_level(quiet ? std::max(found->second, level_enum::warn) : found->second);
}

bool info_shown() {
  return logger().should_log(spdlog::level::info);
}

void log_debug(const std::string& line) {
  log(spdlog::level::debug, line);
}
void log_info(const std::string& line) {
  log(spdlog::level::info, line);
}
void log_warning(const std::string& line) {
  log(spdlog::level::warn, line);
}
void log_error(const std::string& line) {
  log(spdlog::level::err, line);
}

}  // namespace towers::cli
