// What is said of a command line that cannot be meant.
#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "cli/commands.h"
#include "tests/cli/parsing.h"
#include "tests/support.h"

using namespace towers::test;
using Words = std::vector<std::string>;

namespace {

std::string known_commands() {
  std::string list = "there are ";
  for (const auto& command : towers::cli::commands())
    list += (command.name == "train" ? "" : ", ") + command.name;
  return list + " and help";
}

}  // namespace

TEST_CASE("an unknown flag is named, with the nearest of the command") {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"--batchsize=3"}, "unknown flag --batchsize; did you mean --batch_size?"},
      {{"--batchsize", "3"}, "unknown flag --batchsize; did you mean --batch_size?"},
      {{"-batchsize", "3"}, "unknown flag --batchsize; did you mean --batch_size?"},
      {{"train", "--batch-size=3"}, "unknown flag --batch-size; did you mean --batch_size?"},
      {{"--Batch_Size=3"}, "unknown flag --Batch_Size; did you mean --batch_size?"},
      {{"--lr=3"}, "unknown flag --lr; did you mean --learning_rate?"},
      {{"--gpus=3"}, "unknown flag --gpus; did you mean --num_gpus?"},
      {{"--noresum"}, "unknown flag --noresum; did you mean --noresume?"},
      {{"--nodownlaod"}, "unknown flag --nodownlaod; did you mean --nodownload?"},
      {{"--num_gpu=2"}, "unknown flag --num_gpu; did you mean --num_gpus?"},
      {{"eval", "--runonce"}, "unknown flag --runonce; did you mean --run_once?"},
      {{"inspect", "--jsn", "x"}, "unknown flag --jsn; did you mean --json?"},
      {{"--zzz"}, "unknown flag --zzz; see `towers train --help`"},
      {{"eval", "--zzz=1"}, "unknown flag --zzz; see `towers eval --help`"},
      {{"-x"}, "unknown flag --x; see `towers train --help`"},
      {{"--=3"}, "unknown flag --; see `towers train --help`"},
  };
  for (const auto& [args, message] : cases) {
    INFO(args.back());
    CHECK(complaint(args) == message);
  }
}

TEST_CASE("a flag of another command is told so") {
  CHECK(complaint({"--num_examples=3"}) ==
        "--num_examples belongs to `towers eval`, not to `towers train`");
  CHECK(complaint({"--num_examples", "3"}) ==
        "--num_examples belongs to `towers eval`, not to `towers train`");
  CHECK(complaint({"--eval_dir=--learning_rate=", "--quiet"}) ==
        "--eval_dir belongs to `towers eval`, not to `towers train`");
  CHECK(complaint({"--eval_dir="}) == "--eval_dir belongs to `towers eval`, not to `towers train`");
  CHECK(complaint({"--norun_once"}) ==
        "--norun_once belongs to `towers eval`, not to `towers train`");
  CHECK(complaint({"eval", "--num_gpus=3"}) ==
        "--num_gpus belongs to `towers train` and `towers bench`, not to `towers eval`");
  CHECK(complaint({"--format=onnx"}) ==
        "--format belongs to `towers export`, not to `towers train`");
  CHECK(complaint({"--output=a"}) ==
        "--output belongs to `towers export` and `towers import`, not to `towers train`");
  CHECK(complaint({"export", "--checkpoint_dir=a"}) ==
        "--checkpoint_dir belongs to `towers eval`, `towers predict` and `towers linear`, not to "
        "`towers export`");
  CHECK(complaint({"--numexamples=3"}) ==
        "unknown flag --numexamples; did you mean --num_examples of `towers eval`?");
}

TEST_CASE("an unknown command is named, with the nearest") {
  CHECK(complaint({"evall"}) == "unknown command 'evall'; did you mean eval?");
  CHECK(complaint({"trian"}) == "unknown command 'trian'; did you mean train?");
  CHECK(complaint({"--quiet", "Devices"}) == "unknown command 'Devices'; did you mean devices?");
  CHECK(complaint({"help", "evl"}) == "unknown command 'evl'; did you mean eval?");
  CHECK(complaint({"frobnicate"}) == "unknown command 'frobnicate'; " + known_commands());
  CHECK(complaint({""}) == "unknown command ''; " + known_commands());
}

TEST_CASE("a malformed value is named, with what is allowed") {
  const std::string batch = ": expected a whole number in plain digits, 1 to 65536";
  const std::string steps = ": expected a whole number in plain digits, 0 or more";
  for (const char* value : {"0", "-1", "12x", "x", "1e3", "0x10", "1.0", "", "65537", "1,000",
                            "1 2", "--1", "+-1", "99999999999999999999", "\u0661"}) {
    CHECK(complaint({std::string("--batch_size=") + value}) ==
          std::string("--batch_size=") + value + batch);
  }
  CHECK(complaint({"--batch_size", "-1"}) == "--batch_size=-1" + batch);
  CHECK(complaint({"--max_steps=-1"}) == "--max_steps=-1" + steps);
  CHECK(complaint({"--max_steps=9223372036854775808"}) ==
        "--max_steps=9223372036854775808" + steps);
  for (const char* value :
       {"nan", "NaN", "inf", "-inf", "-1", "1e999", "1.2.3", "0x1p3", "", "1,5"}) {
    CHECK(complaint({std::string("--learning_rate=") + value}) ==
          std::string("--learning_rate=") + value + ": expected a number, 0 or more");
  }
  CHECK(complaint({"--learning_rate", "-.5"}) ==
        "--learning_rate=-.5: expected a number, 0 or more");
  CHECK(complaint({"--epochs_per_decay=0"}) == "--epochs_per_decay=0: expected a number above 0");
  CHECK(complaint({"--moving_average_decay=1.1"}) ==
        "--moving_average_decay=1.1: expected a number from 0 to 1");
  CHECK(complaint({"--seed=-1"}) ==
        "--seed=-1: expected a whole number in plain digits, 0 to 18446744073709551615");
  CHECK(complaint({"--precision=FP16"}) == "--precision=FP16: expected fp32, bf16, fp16 or fp64");
  CHECK(complaint({"--resume=maybe"}) == "--resume=maybe: expected true or false");
  CHECK(complaint({"--noresume", "--resume=2"}) == "--resume=2: expected true or false");
  CHECK(complaint({"--help=maybe"}) == "--help=maybe: expected true or false");
  CHECK(complaint({"--train_dir="}) == "--train_dir=: expected the name of a folder");
  CHECK(complaint({"--train_dir", ""}) == "--train_dir=: expected the name of a folder");
  CHECK(complaint({"--data_sha256=abc"}) == "--data_sha256=abc: expected 64 hexadecimal digits");
  CHECK(complaint({"--data_url=ftp://x"}) ==
        "--data_url=ftp://x: expected an address that begins with https://, http:// or file://");
}

TEST_CASE("blanks around a value and control characters in it are not taken") {
  CHECK(complaint({"--train_dir= x"}) ==
        "--train_dir= x: expected the name of a folder, without blanks around it");
  CHECK(
      complaint({"--batch_size=5 "}) ==
      "--batch_size=5 : expected a whole number in plain digits, 1 to 65536, without blanks around "
      "it");
  CHECK(complaint({"--train_dir=a\nb"}) == "--train_dir=a?b: expected the name of a folder");
  CHECK(complaint({"--ba\x1b[2J=3"}) == "unknown flag --ba?[2J; see `towers train --help`");
  CHECK(complaint({"--batch_size=" + std::string(5000, '7')}).size() < 250);
}

TEST_CASE("a flag without its value says what it needs") {
  CHECK(complaint({"--batch_size"}) ==
        "--batch_size needs a value: expected a whole number in plain digits, 1 to 65536");
  CHECK(complaint({"--train_dir", "--resume"}) ==
        "--train_dir needs a value (the name of a folder), and a flag follows: --resume");
  CHECK(complaint({"--train_dir", "-x"}) ==
        "--train_dir needs a value (the name of a folder), and a flag follows: -x");
  CHECK(complaint({"--flagfile"}) == "--flagfile needs a value: expected the name of a file");
}

TEST_CASE("a switch takes no value of its own word, and no flag but a switch takes no") {
  CHECK(complaint({"--resume", "true"}) == "unexpected 'true' after --resume: write --resume=true");
  CHECK(complaint({"train", "--resume", "False"}) ==
        "unexpected 'False' after --resume: write --resume=False");
  CHECK(complaint({"train", "--resume=1", "true"}) ==
        "unexpected 'true'; see `towers train --help`");
  CHECK(complaint({"--noresume=true"}) ==
        "--noresume takes no value: write --noresume or --resume=true");
  CHECK(complaint({"--resume="}) == "--resume=: expected true or false after the equals sign");
  CHECK(complaint({"--nobatch_size"}) ==
        "--nobatch_size: --batch_size cannot be switched off, it takes a whole number in plain "
        "digits, 1 to 65536");
}

TEST_CASE("stray words are named") {
  CHECK(complaint({"train", "foo"}) == "unexpected 'foo'; see `towers train --help`");
  CHECK(complaint({"--train_dir=my", "run"}) == "unknown command 'run'; " + known_commands());
  CHECK(complaint({"eval", "--run_once", "ckpt"}) == "unexpected 'ckpt'; see `towers eval --help`");
  CHECK(complaint({"import", "a", "b"}) == "unexpected 'b'; see `towers import --help`");
  CHECK(complaint({"inspect"}) ==
        "towers inspect needs a PATH, for example `towers inspect run1/model.ckpt-9999`");
}

TEST_CASE("flags of features that are not there are unknown") {
  for (const char* flag : {"--profile=x", "--verbose"}) {
    INFO(flag);
    CHECK(complaint({flag}).starts_with("unknown flag "));
  }
}

TEST_CASE("a command line that is refused creates nothing") {
  const TemporaryFolder folder;
  const std::string inside = (folder.path() / "run").string();
  complaint({"--train_dir=" + inside, "--data_dir=" + inside, "--bogus"});
  complaint({"--train_dir=" + inside, "--flagfile=" + inside});
  parsed({"--train_dir=" + inside, "--data_dir=" + inside});
  CHECK(std::filesystem::is_empty(folder.path()));
}
