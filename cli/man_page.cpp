#include "cli/man_page.h"

#include "cli/commands.h"
#include "cli/flags.h"

namespace towers::cli {
namespace {

// Text as roff takes it literally; it begins no line with a control character.
std::string roff(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string paragraph(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + roff(text) + "\n";
}

std::string flag_paragraph(const Flag& flag) {
  const bool on = flag.value.default_text == "true";
  std::string tag =
      "\\fB" + roff(flag.value.boolean && on ? "--[no]" : "--") + roff(flag.name) + "\\fR";
  if (!flag.value.placeholder.empty()) tag += "=\\fI" + flag.value.placeholder + "\\fR";
  std::string text = flag.help;
  if (!flag.value.choices.empty()) text += ": " + flag.value.expected;
  if (!flag.value.default_text.empty()) text += " [" + flag.value.default_text + "]";
  std::string owners;
  for (const CommandRow& command : commands())
    if ((flag.used & command.bit) != 0) owners += (owners.empty() ? "" : ", ") + command.name;
  if (flag.used == unsigned{every_bit}) owners = "all commands";
  return paragraph(tag, text + ". (" + owners + ")");
}

}  // namespace

std::string man_page() {
  std::string text =
      ".TH TOWERS 1\n"
      ".SH NAME\n"
      "towers \\- data\\-parallel CIFAR\\-10 training, one tower per device\n"
      ".SH SYNOPSIS\n"
      ".B towers\n"
      "[\\fIcommand\\fR] [\\fIargument\\fR ...] [\\fB\\-\\-flag\\fR=\\fIvalue\\fR ...]\n"
      ".SH DESCRIPTION\n"
      "A native program that does the job of TensorFlow 1.x's multi\\-GPU CIFAR\\-10 trainer and "
      "its\n"
      "evaluator, with its flags, step lines, checkpoints and event files.\n"
      "Without a command it trains.\n"
      ".SH COMMANDS\n";
  for (const CommandRow& command : commands()) {
    text += paragraph("\\fB" + roff("towers " + command.usage) + "\\fR", command.summary + ".");
    text += ".RS\n.nf\n";
    for (const std::string& example : command.examples) text += roff(example) + "\n";
    text += ".fi\n.RE\n";
  }
  text +=
      ".SH FLAGS\n"
      "A flag is written \\-\\-flag=value or \\-\\-flag value, a switch \\-\\-flag, "
      "\\-\\-flag=true,\n"
      "\\-\\-flag=false or \\-\\-noflag; one dash works too.\n"
      "Defaults are in brackets, the commands for which a flag does something in parentheses.\n";
  for (int group = 0; group <= static_cast<int>(Group::general); ++group) {
    text += ".SS " + std::string(title(static_cast<Group>(group))) + "\n";
    for (const Flag& flag : flags())
      if (static_cast<int>(flag.group) == group) text += flag_paragraph(flag);
  }
  return text + ".SH EXIT STATUS\n" +
         paragraph("0", "Done; also after SIGUSR1 and --max_seconds.") +
         paragraph(
             "1",
             "Something outside is wrong (data, disk, network, diverged); one line says what.") +
         paragraph("2", "A wrong flag, value or command.") +
         paragraph("130, 143, 129", "Ended by SIGINT, SIGTERM, SIGHUP, with a checkpoint saved.") +
         ".SH FILES\n"
         ".nf\n"
         "\\fItrain_dir\\fR/model.ckpt\\-\\fISTEP\\fR.*\n"
         "\\fItrain_dir\\fR/checkpoint\n"
         "\\fItrain_dir\\fR/events.out.tfevents.*\n"
         "\\fItrain_dir\\fR/flags.txt\n"
         ".fi";
}

}  // namespace towers::cli
