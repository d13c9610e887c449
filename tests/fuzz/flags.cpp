// The command line (an even first byte; arguments are lines) and a file of flags (an odd one). What
// is accepted can be written as a flagfile, and reads back the same.

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/parse.h"
#include "tests/fuzz/target.h"

using namespace towers;

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
  }
  return lines;
}

// Files of the machine are not this target's business, and some of them never end.
bool names_a_file(std::string_view text) {
  return text.find("flagfile") != std::string_view::npos;
}

std::string version() {
  return "version";
}

// The words that stand for the command, and for its argument.
std::vector<std::string> words_of(const cli::Parsed& parsed) {
  for (const cli::CommandRow& row : cli::commands()) {
    if (row.make().index() != parsed.command.index()) continue;
    if (row.argument.empty()) return {row.name};
    return {row.name, "x"};
  }
  fuzz::fail("a command that is in no row");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text = fuzz::view(bytes, size);
  if (text.empty() || names_a_file(text)) return 0;
  const bool command_line = static_cast<unsigned char>(text.front()) % 2 == 0;
  text.remove_prefix(1);
  const std::filesystem::path file = fuzz::folder() / "flags.txt";
  std::vector<std::string> args = {"train", "--flagfile=" + file.string()};
  if (command_line)
    args = lines_of(text);
  else
    fuzz::write_file(file, text);
  fuzz::expect_errors_alone([&] {
    const cli::Parsed parsed = cli::parse(args, version);
    if (std::holds_alternative<cli::Information>(parsed.command)) return;
    fuzz::write_file(file, parsed.flagfile);
    std::vector<std::string> again = words_of(parsed);
    again.push_back("--flagfile=" + file.string());
    std::string flagfile;
    try {
      flagfile = cli::parse(again, version).flagfile;
    } catch (const Error& error) {
      fuzz::fail(std::string("does not read back: ") + error.what());
    }
    if (flagfile != parsed.flagfile) fuzz::fail("reads back as another:\n" + parsed.flagfile);
  });
  return 0;
}
