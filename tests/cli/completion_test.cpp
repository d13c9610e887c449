// Completion scripts and the manual page, both made from the tables of commands and flags.
#include "cli/completion.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/man_page.h"
#include "core/error.h"
#include "tests/support.h"

using namespace towers::cli;
using namespace towers::test;
using WordSet = std::set<std::string>;

namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

// What bash offers for the last of these words (bash's own words: "--flag=x" are three), blanks at
// the ends taken off.
WordSet offered(const std::vector<std::string>& words) {
  TemporaryFolder folder;
  write_file(folder.path() / "script", completion_script("bash"));
  std::string line = "cd " + folder.path().string() + " && mkdir runs && . ./script\nCOMP_WORDS=(";
  for (const std::string& word : words) line += " '" + word + "'";
  line += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
          "\n_towers 2>/dev/null\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  write_file(folder.path() / "main", line);
  std::istringstream lines(output_of("bash " + (folder.path() / "main").string()));
  WordSet found;
  for (std::string word; std::getline(lines, word);) {
    while (word.ends_with(' ')) word.pop_back();
    if (!word.empty()) found.insert(word);
  }
  return found;
}

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// Whether the shell takes the script as well formed.
void check_syntax(const std::string& shell) {
  if (!installed(shell)) return skip(shell + " is not installed");
  TemporaryFolder folder;
  const std::string file = (folder.path() / "script").string();
  write_file(file, completion_script(shell) + "\n");
  CHECK(output_of(shell + " -n " + file + " 2>&1; echo $?") == "0\n");
}

}  // namespace

TEST_CASE("bash offers commands, flags of the command, and their values") {
  CHECK(offered({"towers", "dev"}) == WordSet{"devices"});
  CHECK(offered({"towers", "eval", "--run_o"}) == WordSet{"--run_once"});
  CHECK(offered({"towers", "--max_st"}) == WordSet{"--max_steps="});
  CHECK(offered({"towers", "--nodown"}) == WordSet{"--nodownload"});
  CHECK(offered({"towers", "eval", "--max_st"}).empty());
  CHECK(offered({"towers", "--decay_by", "="}) == WordSet{"steps", "examples"});
  CHECK(offered({"towers", "--decay_by", "=", "ex"}) == WordSet{"examples"});
  CHECK(offered({"towers", "--decay_by", "ex"}) == WordSet{"examples"});
  CHECK(offered({"towers", "--train_dir", "=", ""}) == WordSet{"runs"});
  CHECK(offered({"towers", "bench", "--what", "=", "la"}) == WordSet{"layers"});
  CHECK(offered({"towers", "bench", "--precision", "=", "fp32,b"}) == WordSet{"fp32,bf16"});
  CHECK(offered({"towers", "--precision", "=", "fp32,b"}).empty());  // one alone
  CHECK(offered({"towers", "--max_steps", "=", ""}).empty());        // any number
  CHECK(offered({"towers", "--max_steps", ""}).empty());
  CHECK(offered({"towers", "--resume", "ev"}) == WordSet{"eval"});  // a switch takes no value
  CHECK(offered({"towers", "import", "scr"}) == WordSet{"script"});
  CHECK(offered({"towers", "completion", ""}) == WordSet{"bash", "zsh", "fish"});
  CHECK(offered({"towers", "help", "ma"}) == WordSet{"man"});
  CHECK(offered({"towers", "help", "exp"}) == WordSet{"export"});
  CHECK(offered({"towers", "he"}) == WordSet{"help"});
  CHECK(offered({"towers", "eval", "dev"}).empty());  // one command is enough
  const WordSet train = offered({"towers", "--"});
  for (const Flag& flag : flags()) {
    const bool mine = std::any_of(flags().begin(), flags().end(), [&](const Flag& row) {
      return row.name == flag.name && (row.used & train_bit) != 0;
    });
    const auto spelled = [&](const std::string& no, const std::string& end) {
      return train.count("--" + no + flag.name + end);
    };
    INFO(flag.name);
    CHECK(spelled("", "") + spelled("no", "") + spelled("", "=") == (mine ? 1 : 0));
  }
}

TEST_CASE("zsh takes its script") {
  check_syntax("zsh");
}
TEST_CASE("zsh completes commands, flags of the command, and arguments") {
  if (!installed("zsh")) return skip("zsh is not installed");
  TemporaryFolder folder;
  write_file(folder.path() / "script", completion_script("zsh") + "\n");
  // An interactive zsh on a terminal of its own, in which the tab is pressed; what does not come is
  // waited for no longer than `timeout` lets it.
  const auto completes = [&](const std::string& line, const std::string& to) {
    write_file(
        folder.path() / "main",
        "zmodload zsh/zpty\n"
        "zpty z zsh -f -i\n"
        "zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; . ./script; print rea\"\"dy'\n"
        "zpty -r z text '*ready*'\n"
        "zpty -w -n z $'" +
            line +
            "\\t'\n"
            "zpty -r z text '*" +
            to + "*' && print found\n");
    return output_of("cd " + folder.path().string() +
                     " && HOME=$PWD timeout 20 zsh -f main 2>&1") == "found\n";
  };
  CHECK(completes("towers dev", "devices"));
  CHECK(completes("towers --max_st", "--max_steps"));
  CHECK(completes("towers eval --run_o", "--run_once"));
  CHECK(completes("towers import scr", "script"));
  CHECK(completes("towers bench --precision=fp32,b", "fp32,bf16"));
}

TEST_CASE("fish takes its script") {
  check_syntax("fish");
}

TEST_CASE("fish offers commands, flags of the command, and their values") {
  if (!installed("fish")) return skip("fish is not installed");
  TemporaryFolder folder;
  write_file(folder.path() / "towers.fish", completion_script("fish") + "\n");
  write_file(folder.path() / "devices.txt", "");  // no command is a file
  // What stands before the tab is offered, behind it is what it means.
  const auto offers = [&](const std::string& line) {
    std::istringstream lines(output_of("cd " + folder.path().string() +
                                       " && HOME=$PWD fish --no-config -c 'source towers.fish; "
                                       "complete -C \"" +
                                       line + "\"' 2>&1"));
    WordSet found;
    for (std::string word; std::getline(lines, word);)
      found.insert(word.substr(0, word.find('\t')));
    return found;
  };
  CHECK(offers("towers dev") == WordSet{"devices"});
  CHECK(offers("towers eval --run_o") == WordSet{"--run_once"});
  CHECK(offers("towers --max_st") == WordSet{"--max_steps"});
  CHECK(offers("towers eval --max_st").empty());
  CHECK(offers("towers eval dev").empty());
  CHECK(offers("towers import dev") == WordSet{"devices.txt"});
  CHECK(offers("towers --decay_by=") == WordSet{"--decay_by=steps", "--decay_by=examples"});
  CHECK(offers("towers bench --precision=b") == WordSet{"--precision=bf16"});
  CHECK(offers("towers completion ") == WordSet{"bash", "zsh", "fish"});
}

TEST_CASE("there is a script for three shells") {
  CHECK_THROWS_AS(completion_script("tcsh"), towers::UsageError);
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(shell);
    for (const Flag& flag : flags()) CHECK(script.find(flag.name) != std::string::npos);
    CHECK_FALSE(script.ends_with('\n'));
  }
}

TEST_CASE("the manual page has every command and flag, and only macros that man knows") {
  const std::string page = man_page();
  for (const Flag& flag : flags()) CHECK(page.find(flag.name + "\\fR") != std::string::npos);
  for (const CommandRow& command : commands())
    CHECK(page.find("\\fBtowers " + command.usage.substr(0, 4)) != std::string::npos);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK_FALSE(line.empty());
    if (line.starts_with('.'))
      CHECK(WordSet{".TH", ".SH", ".SS", ".TP", ".B", ".RS", ".RE", ".nf", ".fi"}.count(
                line.substr(0, line.find(' '))) == 1);
    CHECK_FALSE(line.starts_with('\''));
  }
  CHECK(page.find("# begins a comment. (all commands)") != std::string::npos);
}
