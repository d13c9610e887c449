#pragma once
// argv to options. The only place that knows flag spellings; help and parser share one table.

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace towers::cli {

// --help or --version was asked for: print `text` on stdout, exit code 0.
struct Information {
  std::string text;
};

using Command = std::variant<Information, TrainOptions, EvalOptions, DevicesOptions, DownloadOptions,
                             InspectOptions>;

struct Parsed {
  Command command;
  // Every flag of the command with its value in force, "--name=value" a line: a flagfile.
  std::string flagfile;
  // Names of the flags given on the command line or in a flagfile.
  std::vector<std::string> given;
};

// args: without the program's name. `version`: what --version prints.
// Throws UsageError: unknown flag (with the nearest name), malformed or out-of-range value, unknown
// command.
Parsed parse(const std::vector<std::string>& args, const std::string& version);

}  // namespace towers::cli
