#pragma once
// argv to options. Help and parser are both made from the one table in cli/flags.h.

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace towers::cli {

// --help, --version, the command `help`, or `help man` (the manual page): print `text` on stdout
// (it ends without a line break), exit code 0.
struct Information {
  std::string text;
};

using Command = std::variant<Information, TrainOptions, EvalOptions, DevicesOptions,
                             DownloadOptions, InspectOptions, ExportOptions, ImportOptions,
                             PredictOptions, LinearOptions, BenchOptions, CompletionOptions>;

struct Parsed {
  Command command;
  // Every flag of the command with its value in force, "--name=value" a line: a flagfile that
  // --flagfile reads back. A flag without a value (no --seed) has no line.
  std::string flagfile;
  // Names of the flags given on the command line or in a flagfile, each once, in order of
  // appearance.
  std::vector<std::string> given;
};

// args: without the program's name. `version`: makes what --version prints.
// Spellings: --flag=value, --flag value, --bool, --nobool, --bool=false, all with one dash too;
// `--` ends the flags. --flagfile=FILE stands for the lines of FILE; of a flag given twice the last
// counts. Flags may stand before the command word. Nothing is touched but the flagfiles, which are
// read. Throws UsageError: unknown command or flag (with the nearest name), malformed or
// out-of-range value.
Parsed parse(const std::vector<std::string>& args, const std::function<std::string()>& version);

// `flagfile` with its line of flag `name` replaced by "--name=value", or that line added; or
// without that line.
std::string with_flag(std::string_view flagfile, std::string_view name, std::string_view value);
std::string without_flag(std::string_view flagfile, std::string_view name);

}  // namespace towers::cli
