// --help, as a person meets it.
#include "cli/help.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

#include "cli/flags.h"
#include "tests/cli/parsing.h"

using namespace towers::cli;
using namespace towers::test;

namespace {

int matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

}  // namespace

TEST_CASE("help fits 80 columns") {
  for (const CommandRow& command : commands()) {
    std::istringstream lines(help(command));
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}

TEST_CASE("help names every flag of the command once, and no other") {
  for (const CommandRow& command : commands()) {
    const std::string text = help(command);
    for (const Flag& flag : flags()) {
      INFO(command.name << " --" << flag.name);
      // Several commands may each have a flag of that name.
      const auto used = [&](const Flag& row) {
        return row.name == flag.name && (row.used & command.bit) != 0;
      };
      const int expected = std::any_of(flags().begin(), flags().end(), used) ? 1 : 0;
      // Two blanks between the flag and what it does.
      CHECK(matches(text, "\n  --(\\[no\\])?" + flag.name + "(=[A-Z]+)?  +[^ ]") == expected);
      if (expected == 0 && (flag.accepted & command.bit) != 0) {
        const auto idle = text.find("without effect here:");
        REQUIRE(idle != std::string::npos);
        CHECK(matches(text.substr(idle), "--" + flag.name + "\\b") == 1);
      }
    }
  }
}

TEST_CASE("help shows defaults and choices") {
  const std::string text = information({"--help"});
  CHECK(matches(text, "--batch_size=N .*\\[128\\]") == 1);
  CHECK(matches(text, "--\\[no\\]allow_soft_placement(.|\n)*?\\[true\\]") > 0);
  CHECK(matches(text,
                "--precision=NAME .*of "
                "products;[^:]*:\\s+fp32,\\s+bf16,\\s+fp16\\s+or\\s+fp64\\s+\\[fp32\\]") == 1);
  CHECK(matches(text, "--seed=N .*\\[random\\]") == 1);
  CHECK(matches(text, "\\[\\]") == 0);
}

TEST_CASE("help begins with the usage and examples that can be typed") {
  for (const CommandRow& command : commands()) {
    const std::string text = help(command);
    CHECK(text.starts_with("Usage: towers "));
    REQUIRE(command.examples.size() >= 2);
    for (const std::string& example : command.examples) {
      CHECK(text.find("\n  " + example + "\n") < 400);
      std::istringstream words(example);
      std::vector<std::string> args;
      for (std::string word; words >> word;) args.push_back(word);
      REQUIRE(args.front() == "towers");
      args.erase(args.begin());
      CHECK(complaint(args) == "(accepted)");
    }
  }
}

TEST_CASE("help is found in every way that people try") {
  const std::string text = information({"--help"});
  CHECK(text.find("Optimization\n") != std::string::npos);
  CHECK_FALSE(text.ends_with('\n'));
  CHECK(information({"help"}) == text);
  CHECK(information({"train", "--help"}) == text);
  CHECK(information({"help", "train"}) == text);
  CHECK(information({"help", "--help"}) == text);
  CHECK(information({"-h"}) == text);
  CHECK(information({"-help"}) == text);
  const std::string eval = information({"eval", "--help"});
  CHECK(eval != text);
  CHECK(information({"help", "eval"}) == eval);
  CHECK(information({"--help", "eval"}) == eval);
  CHECK(information({"help", "--help", "eval"}) == eval);
  CHECK(information({"inspect", "--help"}).starts_with("Usage: towers inspect PATH"));
}

TEST_CASE("help lists the other commands") {
  const std::string text = information({"--help"});
  for (const char* name :
       {"eval", "devices", "download", "inspect", "export", "import", "predict"}) {
    CHECK(matches(text, std::string("\n  ") + name + " +[A-Z]") == 1);
  }
}
