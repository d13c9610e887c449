#pragma once
// Short ways to say what a command line means.

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "cli/parse.h"
#include "core/error.h"

namespace towers::test {

inline cli::Parsed parsed(const std::vector<std::string>& args) {
  return cli::parse(args, [] { return "the version"; });
}

template <class Options>
Options options(const std::vector<std::string>& args) {
  const cli::Parsed result = parsed(args);
  REQUIRE(std::holds_alternative<Options>(result.command));
  return std::get<Options>(result.command);
}

inline cli::TrainOptions train(const std::vector<std::string>& args) {
  return options<cli::TrainOptions>(args);
}

inline std::string information(const std::vector<std::string>& args) {
  return options<cli::Information>(args).text;
}

// The message of the UsageError that `args` ends with.
inline std::string complaint(const std::vector<std::string>& args) {
  try {
    parsed(args);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "(accepted)";
}

}  // namespace towers::test
