#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "cli/commands.h"
#include "cli/complaints.h"
#include "cli/flagfile.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/spelling.h"
#include "core/error.h"

namespace towers::cli {
namespace {

// One command's flags as CLI11 takes them, in words or from flagfiles, in order of appearance.
class Parser {
 public:
  Parser(const CommandRow& command, CommonOptions& options)
      : command_(command), options_(options) {}

  // words: in plain spelling. Returns those that are neither a flag nor the value of one, as they
  // came. Throws UsageError on the first bad value; then this object is of no more use.
  std::vector<std::string> read(std::vector<std::string> words) {
    // --flagfile calls back while one is at work, so there is one for each depth.
    if (apps_.size() == depth_) apps_.push_back(make_app());
    CLI::App& app = *apps_[depth_];
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    ++depth_;
    app.parse(words);
    --depth_;
    return app.remaining();
  }

  const std::vector<std::string>& given() const { return given_; }
  bool was_given(const std::string& name) const {
    return std::find(given_.begin(), given_.end(), name) != given_.end();
  }

 private:
  std::unique_ptr<CLI::App> make_app() {
    auto app = std::make_unique<CLI::App>();
    app->set_help_flag();
    app->allow_extras();
    for (const Flag& flag : flags()) {
      if ((flag.accepted & command_.bit) != 0) add(*app, flag);
    }
    return app;
  }

  // Values are taken one by one as they are met: so the last counts, and a flagfile in between too.
  void add(CLI::App& app, const Flag& flag) {
    CLI::Option* option = flag.value.boolean ? app.add_flag("--" + flag.name + ",!--no" + flag.name)
                                             : app.add_option("--" + flag.name);
    option->trigger_on_parse()->each([this, &flag](const std::string& text) {
      if (flag.name == "flagfile") {
        read_flagfile(text);
      } else {
        set(flag, text);
      }
    });
  }

  void set(const Flag& flag, const std::string& text) {
    if (!flag.value.set(options_, text)) {
      const bool blanks = text.starts_with(' ') || text.ends_with(' ');
      throw UsageError("--" + flag.name + "=" + printable(text) + ": expected " +
                       flag.value.expected + (blanks ? ", without blanks around it" : ""));
    }
    if (!was_given(flag.name)) given_.push_back(flag.name);
  }

  void read_flagfile(const std::string& path) {
    flagfiles_.read(path, [this](const std::string& argument) {
      if (!take_apart(argument).flag) {
        throw UsageError("expected a flag, found '" + printable(argument) + "'");
      }
      const Spelled spelled = spell({argument});
      if (spelled.help || spelled.version) {
        throw UsageError(printable(argument) + " belongs on the command line");
      }
      const auto rest = read(spelled.words);
      if (!rest.empty()) throw UsageError(unknown_flag(rest.front(), command_));
    });
    options_.flagfiles.push_back(path);
  }

  const CommandRow& command_;
  CommonOptions& options_;
  FlagfileReader flagfiles_;
  std::vector<std::unique_ptr<CLI::App>> apps_;
  std::size_t depth_ = 0;
  std::vector<std::string> given_;
};

// The command's own arguments. rest: the words that no flag took; behind: those behind "--".
std::vector<std::string> arguments_of(const CommandRow& command, std::vector<std::string> rest,
                                      const std::vector<std::string>& behind,
                                      const std::vector<std::string>& args) {
  // Flags come first, since a word behind an unknown flag is likely to be its value.
  for (const std::string& word : rest) {
    if (take_apart(word).flag) throw UsageError(unknown_flag(word, command));
  }
  rest.insert(rest.end(), behind.begin(), behind.end());
  const bool any = !command.argument.empty();
  const std::size_t most = any ? command.most_arguments : 0;
  if (rest.size() > most) throw UsageError(stray_word(rest[most], args, command));
  if (any && rest.size() < command.fewest_arguments) {
    throw UsageError("towers " + command.name + " needs a " + command.argument + ", for example `" +
                     command.examples.front() + "`");
  }
  return rest;
}

const CommandRow& command_of(const Spelled& spelled, const std::vector<std::string>& args) {
  if (!spelled.has_command) return commands().front();
  if (const CommandRow* command = find_command(spelled.command)) return *command;
  // The word is likely to be its value.
  if (!spelled.unknown.empty()) throw UsageError(unknown_flag(spelled.unknown, commands().front()));
  throw UsageError(unknown_command(spelled.command, args));
}

// `towers help` and `towers help COMMAND`.
// Flags behind "help" change nothing: `towers help --help` is meant as it is without.
const CommandRow& command_to_explain(const Spelled& spelled, const std::vector<std::string>& args) {
  const auto word = std::find_if(spelled.words.begin(), spelled.words.end(),
                                 [](const std::string& text) { return !take_apart(text).flag; });
  if (word == spelled.words.end()) return commands().front();
  const CommandRow* command = find_command(*word);
  if (command == nullptr) throw UsageError(unknown_command(*word, args));
  return *command;
}

void settle_precision(CommonOptions& options, const Parser& parser) {
  if (!options.use_fp16) return;
  if (parser.was_given("precision") && options.precision != "fp16") {
    throw UsageError(
        "--use_fp16 and --precision=" + options.precision +
        " contradict each other: give --precision=fp16 alone, or leave --use_fp16 out");
  }
  options.precision = "fp16";
}

std::string flagfile_of(const CommandRow& command, const CommonOptions& options) {
  std::string lines;
  for (const Flag& flag : flags()) {
    if ((flag.accepted & command.bit) == 0 || !flag.value.get) continue;
    if (const auto value = flag.value.get(options)) lines += "--" + flag.name + "=" + *value + "\n";
  }
  return lines;
}

// Null for Information.
CommonOptions* options_of(Command& command) {
  return std::visit(
      [](auto& options) -> CommonOptions* {
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, Information>) {
          return nullptr;
        } else {
          return &options;
        }
      },
      command);
}

}  // namespace

Parsed parse(const std::vector<std::string>& args, const std::function<std::string()>& version) {
  const Spelled spelled = spell(args);
  if (spelled.has_command && spelled.command == "help") {
    if (spelled.words == std::vector<std::string>{"man"}) return {Information{man_page()}, "", {}};
    return {Information{help(command_to_explain(spelled, args))}, "", {}};
  }
  const CommandRow& command = command_of(spelled, args);
  if (spelled.help) return {Information{help(command)}, "", {}};
  if (spelled.version) return {Information{version()}, "", {}};

  Parsed parsed{command.make(), "", {}};
  CommonOptions& options = *options_of(parsed.command);
  Parser parser(command, options);
  options.arguments = arguments_of(command, parser.read(spelled.words), spelled.behind, args);
  settle_precision(options, parser);
  parsed.flagfile = flagfile_of(command, options);
  parsed.given = parser.given();
  return parsed;
}

}  // namespace towers::cli
