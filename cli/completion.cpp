#include "cli/completion.h"

#include <set>
#include <vector>

#include "cli/commands.h"
#include "cli/flags.h"
#include "core/error.h"

namespace towers::cli {
namespace {

enum class Kind { none, choice, list, folder, file, other };

Kind kind_of(const Value& value) {
  if (value.boolean) return Kind::none;
  if (value.placeholder == "NAMES") return Kind::list;
  if (!value.choices.empty()) return Kind::choice;
  if (value.placeholder == "DIR") return Kind::folder;
  if (value.placeholder == "FILE" || value.placeholder == "CHECKPOINT") return Kind::file;
  return Kind::other;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<const Flag*> flags_of(const CommandRow& command) {
  std::vector<const Flag*> found;
  for (const Flag& flag : flags())
    if ((flag.used & command.bit) != 0) found.push_back(&flag);
  return found;
}

// As people meet it: a switch that is on by default as --noflag.
std::string spelled(const Flag& flag) {
  return flag.value.boolean && flag.value.default_text == "true" ? "no" + flag.name : flag.name;
}

std::string command_names() {
  std::vector<std::string> names;
  for (const CommandRow& command : commands()) names.push_back(command.name);
  return joined(names, " ");
}

// In single quotes for a POSIX shell and zsh.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What stands behind a command that takes words: certain ones, or files.
std::string bash_arguments() {
  std::string text;
  for (const CommandRow& command : commands()) {
    if (command.argument.empty()) continue;
    text += "      " + command.name + "1) ";
    text += command.words.empty()
                ? "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
                : "COMPREPLY=($(compgen -W " + quoted(joined(command.words, " ")) +
                      " -- \"$cur\")) ;;\n";
  }
  return text;
}

// "COMMAND --FLAG VALUE" where the value is a list with more than one element.
std::string bash_lists() {
  std::vector<std::string> patterns;
  for (const CommandRow& command : commands())
    for (const Flag* flag : flags_of(command))
      if (kind_of(flag->value) == Kind::list)
        patterns.push_back("\"" + command.name + " --" + flag->name + " \"*,*");
  return joined(patterns, "|");
}

std::string bash_script() {
  std::string text =
      "# bash completion for towers: source it, or copy it as \"towers\" to\n"
      "# ~/.local/share/bash-completion/completions/\n"
      "_towers() {\n"
      "  local command=train seen= word flag= before= cur=${COMP_WORDS[COMP_CWORD]}\n"
      "  local prev=${COMP_WORDS[COMP_CWORD-1]} commands=" +
      quoted(command_names()) +
      "\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \" $commands help \" in *\" $word \"*) command=$word seen=1; break ;; esac\n"
      "  done\n"
      // Bash takes --flag=value as three words.
      "  if [ \"$cur\" = = ]; then flag=$prev cur=\n"
      "  elif [ \"$prev\" = = ]; then flag=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  elif [ \"${cur:0:1}\" != - ]; then flag=$prev; fi\n"
      // Of a list the last element is completed.
      "  case \"$command $flag $cur\" in " +
      bash_lists() +
      ") before=${cur%,*}, cur=${cur##*,} ;; esac\n"
      "  case $flag in\n";
  std::vector<std::string> folders, files, others;
  std::set<std::string> done;
  for (const Flag& flag : flags()) {
    if (!done.insert(flag.name).second) continue;
    switch (kind_of(flag.value)) {
      case Kind::none:
        break;
      case Kind::folder:
        folders.push_back("--" + flag.name);
        break;
      case Kind::file:
        files.push_back("--" + flag.name);
        break;
      case Kind::other:
        others.push_back("--" + flag.name);
        break;
      case Kind::choice:
      case Kind::list:
        text += "    --" + flag.name + ") COMPREPLY=($(compgen -P \"$before\" -W " +
                quoted(joined(flag.value.choices, " ")) + " -- \"$cur\")); return ;;\n";
        break;
    }
  }
  text += "    " + joined(folders, "|") +
          ") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n"
          "    " +
          joined(files, "|") +
          ") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n"
          "    " +
          joined(others, "|") +
          ") return ;;\n"
          "  esac\n"
          "  if [ \"${cur:0:1}\" = - ]; then\n"
          "    compopt -o nospace\n"
          "    case $command in\n";
  for (const CommandRow& command : commands()) {
    std::vector<std::string> words;
    for (const Flag* flag : flags_of(command))
      words.push_back("--" + spelled(*flag) + (flag->value.boolean ? "" : "="));
    text += "      " + command.name + ") word=" + quoted(joined(words, " ")) + " ;;\n";
  }
  return text +
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$word\" -- \"$cur\"))\n"
         // A switch is whole; a flag with a value goes on behind its "=".
         "    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} == *= ]] || COMPREPLY[0]+=' '\n"
         "  else\n"
         "    case $command$seen in\n"
         "      train) COMPREPLY=($(compgen -W \"$commands help\" -- \"$cur\")) ;;\n"
         "      help1) COMPREPLY=($(compgen -W \"$commands man\" -- \"$cur\")) ;;\n" +
         bash_arguments() +
         "    esac\n"
         "  fi\n"
         "}\n"
         "complete -F _towers towers";
}

// A description between brackets in a specification of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const Value& value) {
  switch (kind_of(value)) {
    case Kind::choice:
      return ":(" + joined(value.choices, " ") + ")";
    case Kind::list:
      return ":_sequence compadd - " + joined(value.choices, " ");
    case Kind::folder:
      return ":_files -/";
    case Kind::file:
      return ":_files";
    case Kind::none:
    case Kind::other:
      break;
  }
  return ": ";
}

// What stands behind the flags of a command, or in place of one.
std::string zsh_arguments(const CommandRow& command) {
  const std::string line = " \\\n      ";
  if (&command == &commands().front()) return line + "$known";
  if (!command.words.empty()) return line + quoted("2: :(" + joined(command.words, " ") + ")");
  // The command itself, and nothing more: without it zsh takes no flag behind the command.
  return line + quoted(command.argument.empty() ? "1: : " : "*: :_files");
}

std::string zsh_script() {
  std::string text =
      "#compdef towers\n"
      "# zsh completion for towers: copy it as \"_towers\" into a folder of $fpath.\n"
      "_towers() {\n"
      "  local command=train word\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case $word in\n      " +
      [] {
        std::string names;
        for (const CommandRow& command : commands())
          names += (names.empty() ? "" : "|") + command.name;
        return names;
      }() +
      "|help) command=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  local -a known\n"
      "  (( CURRENT == 2 )) && known=(";
  std::string names = "1:command:((";
  for (const CommandRow& command : commands())
    names += command.name + "\\:\"" + zsh_text(command.summary) + "\" ";
  names += "help\\:\"Explains a command\" ";
  text += quoted(names + "))") + ")\n  case $command in\n    help) _arguments '2:command:(" +
          command_names() + " man)' ;;\n";
  for (const CommandRow& command : commands()) {
    text += "    " + command.name + ") _arguments";
    for (const Flag* flag : flags_of(command)) {
      text += " \\\n      ";
      const std::string help = "[" + zsh_text(flag->help) + "]";
      text += flag->value.boolean ? quoted("--" + spelled(*flag) + help)
                                  : quoted("--" + flag->name + "=" + help + ":" +
                                           flag->value.placeholder + zsh_action(flag->value));
    }
    text += zsh_arguments(command) + " ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] = _towers ]]; then _towers \"$@\"; else compdef _towers towers; fi";
}

// In single quotes for fish, where a backslash counts within them.
std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_script() {
  std::string others;
  for (const CommandRow& command : commands())
    if (&command != &commands().front()) others += " " + command.name;
  std::string text =
      "# fish completion for towers: copy it as \"towers.fish\" to ~/.config/fish/completions/";
  for (const CommandRow& command : commands())
    text += "\ncomplete -c towers -f -n '__fish_use_subcommand' -a " + command.name + " -d " +
            fish_quoted(command.summary);
  text += "\ncomplete -c towers -f -n '__fish_use_subcommand' -a help -d 'Explains a command'";
  text += "\ncomplete -c towers -f -n '__fish_seen_subcommand_from help' -a " +
          fish_quoted(command_names() + " man");
  for (const CommandRow& command : commands()) {
    const std::string here =
        "\ncomplete -c towers -f -n '__fish_seen_subcommand_from " + command.name + "'";
    if (!command.words.empty())
      text += here + " -a " + fish_quoted(joined(command.words, " "));
    else if (command.argument.empty())
      text += here;  // no files
  }
  for (const CommandRow& command : commands()) {
    const bool first = &command == &commands().front();
    const std::string condition = first ? "not __fish_seen_subcommand_from" + others
                                        : "__fish_seen_subcommand_from " + command.name;
    for (const Flag* flag : flags_of(command)) {
      text += "\ncomplete -c towers -n '" + condition + "' -l " + spelled(*flag) + " -d " +
              fish_quoted(flag->help);
      const Kind kind = kind_of(flag->value);
      if (kind == Kind::choice || kind == Kind::list)
        text += " -x -a " + fish_quoted(joined(flag->value.choices, " "));
      else if (kind == Kind::folder)
        text += " -x -a '(__fish_complete_directories)'";
      else if (kind == Kind::file)
        text += " -r";
      else if (kind == Kind::other)
        text += " -x";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  throw UsageError("towers completion " + printable(shell) + ": give bash, zsh or fish");
}

}  // namespace towers::cli
