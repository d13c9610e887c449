#include "app/run_state.h"

#include <cctype>
#include <sstream>

#include "cli/format.h"
#include "core/error.h"
#include "data/file.h"
#include "data/run_folder.h"

namespace towers::app {
namespace {

constexpr const char* kPositionMark = "# examples drawn at ";

}  // namespace

std::optional<std::string> RunState::flag(const std::string& name) const {
  const std::string start = "--" + name + "=";
  std::istringstream lines(flagfile);
  std::optional<std::string> value;
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, start.size(), start) == 0) value = line.substr(start.size());
  return value;
}

std::string to_text(const RunState& state) {
  std::string text = std::string(data::kFlagsFileMark) +
                     " Go on with: towers train --flagfile=THIS_FILE --resume\n"
                     "# (after the folder was moved, with its new --train_dir behind them).\n";
  for (const auto& [checkpoint, position] : state.position)
    text += kPositionMark + checkpoint + ": " + std::to_string(position) + "\n";
  return text + state.flagfile;
}

RunState read_run_state(const std::filesystem::path& train_dir) {
  const std::filesystem::path path = train_dir / data::kFlagsFile;
  RunState state;
  if (!std::filesystem::exists(path)) return state;
  std::istringstream in(data::read_whole_file(path));
  const std::string mark = kPositionMark;
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, mark.size(), mark) == 0) {
      const std::size_t colon = line.rfind(": ");
      std::istringstream number(colon == std::string::npos ? "" : line.substr(colon + 2));
      std::uint64_t position = 0;
      if (!std::isdigit(number.peek()) || !(number >> position) || !number.eof())
        throw Error(path.string() + ": malformed line '" + line +
                    "'; move the file away to resume by the step alone");
      state.position[line.substr(mark.size(), colon - mark.size())] = position;
    } else if (line.compare(0, 2, "--") == 0) {
      state.flagfile += line + "\n";
    }
  }
  return state;
}

std::string resume_command(const std::filesystem::path& train_dir) {
  const std::filesystem::path flags = train_dir / data::kFlagsFile;
  std::error_code ignored;
  return "towers train " +
         (std::filesystem::exists(flags, ignored)
              ? "--flagfile=" + cli::shell_quoted(flags.string())
              : "--train_dir=" + cli::shell_quoted(train_dir.string())) +
         " --resume";
}

}  // namespace towers::app
