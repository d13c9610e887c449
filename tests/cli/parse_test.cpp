// TensorFlow's spellings of flags, and which command they go to.
#include <catch2/catch.hpp>
#include <limits>

#include "tests/cli/parsing.h"

using namespace towers::cli;
using namespace towers::test;
using Words = std::vector<std::string>;

TEST_CASE("a value follows an equals sign or a blank, behind one dash or two") {
  CHECK(train({"--batch_size=64"}).batch_size == 64);
  CHECK(train({"--batch_size", "64"}).batch_size == 64);
  CHECK(train({"-batch_size=64"}).batch_size == 64);
  CHECK(train({"-batch_size", "64"}).batch_size == 64);
}

TEST_CASE("a switch is switched on and off in every spelling") {
  for (const Words& on : {Words{"--resume"},
                          {"-resume"},
                          {"--resume=true"},
                          {"--resume=True"},
                          {"-resume=TRUE"},
                          {"--resume=1"},
                          {"--resume=t"},
                          {"--resume=yes"},
                          {"--resume=Y"},
                          {"--resume=on"}}) {
    INFO(on.front());
    CHECK(train(on).resume);
  }
  for (const Words& off : {Words{"--nodownload"},
                           {"-nodownload"},
                           {"--download=false"},
                           {"--download=False"},
                           {"-download=FALSE"},
                           {"--download=0"},
                           {"--download=f"},
                           {"--download=no"},
                           {"--download=N"},
                           {"--download=off"}}) {
    INFO(off.front());
    CHECK_FALSE(train(off).download);
  }
  CHECK(train({"--download"}).download);
  CHECK_FALSE(train({"--noresume"}).resume);
}

TEST_CASE("the spellings of run_once mean what they say") {
  using E = EvalOptions;
  CHECK_FALSE(options<E>({"eval"}).run_once);
  for (const char* on : {"--run_once", "--run_once=true", "--run_once=True", "--run_once=1"}) {
    CHECK(options<E>({"eval", on}).run_once);
  }
  for (const char* off : {"--run_once=false", "--norun_once", "--run_once=0"}) {
    CHECK_FALSE(options<E>({"eval", "--run_once", off}).run_once);
  }
}

TEST_CASE("numbers are read whole, with signs, points and exponents") {
  CHECK(train({"--learning_rate=1e-4"}).learning_rate == 1e-4);
  CHECK(train({"--learning_rate", ".5"}).learning_rate == 0.5);
  CHECK(train({"--learning_rate=+2.5E+1"}).learning_rate == 25);
  CHECK(train({"--learning_rate", "-0"}).learning_rate == 0);
  CHECK(train({"--max_steps=+7"}).max_steps == 7);
  CHECK(train({"--max_steps=007"}).max_steps == 7);
  CHECK(train({"--max_steps=9223372036854775807"}).max_steps ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(train({"--seed=0"}).seed == 0U);
  CHECK(train({"--seed=18446744073709551615"}).seed == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(train({}).seed.has_value());
  CHECK_FALSE(train({}).input_threads.has_value());
  CHECK(train({"--input_threads=0"}).input_threads == 0);
}

TEST_CASE("text is taken as it is") {
  for (const char* name :
       {"a b", "a=b", "{}", "[a,b]", "-odd", "--odd", "%s", "\"q\"", "gr\u00fc\u00df"}) {
    INFO(name);
    CHECK(train({std::string("--train_dir=") + name}).train_dir == name);
  }
  CHECK(train({"--train_dir", "a b"}).train_dir == "a b");
  CHECK(train({"--train_dir", "-"}).train_dir == "-");
  CHECK(train({"--init_from=x", "--init_from="}).init_from.empty());
  CHECK(train({"--init_from", "x", "--init_from", ""}).init_from.empty());
}

TEST_CASE("of a flag given twice the last counts") {
  CHECK(train({"--batch_size=1", "--batch_size", "2", "-batch_size=3"}).batch_size == 3);
  CHECK_FALSE(train({"--resume", "--noresume"}).resume);
  CHECK(train({"--noresume", "--resume=1"}).resume);
  CHECK(parsed({"--resume", "--batch_size=1", "--noresume"}).given ==
        Words{"resume", "batch_size"});
}

TEST_CASE("without a command the flags are those of train") {
  CHECK(train({}).batch_size == 128);
  CHECK(train({"train"}).num_gpus == 1);
  CHECK(train({"train", "--num_gpus=2"}).num_gpus == 2);
  CHECK(train({"--num_gpus", "2", "train"}).num_gpus == 2);
}

TEST_CASE("flags may stand before the command word, and behind it") {
  CHECK(options<EvalOptions>({"--quiet", "eval", "--num_examples=5"}).quiet);
  CHECK(options<EvalOptions>({"--num_examples", "5", "eval"}).num_examples == 5);
  CHECK(options<DevicesOptions>({"devices", "--json"}).json);
  CHECK(options<DownloadOptions>({"--data_dir", "eval", "download"}).data_dir == "eval");
  CHECK(options<InspectOptions>({"inspect", "x/model.ckpt-9"}).arguments ==
        Words{"x/model.ckpt-9"});
  CHECK(options<InspectOptions>({"--json", "inspect", "x"}).json);
  CHECK(options<InspectOptions>({"inspect", "--json", "x", "--quiet"}).arguments == Words{"x"});
}

TEST_CASE("predict takes any number of files") {
  CHECK(options<PredictOptions>({"predict", "a", "--json", "b", "--", "-c"}).arguments ==
        Words{"a", "b", "-c"});
  CHECK(options<PredictOptions>({"predict", "--csv=-"}).arguments.empty());
  CHECK(complaint({"import"}).starts_with("towers import needs a FILE, for example `"));
  CHECK(complaint({"import", "a", "b"}).starts_with("unexpected 'b'"));
}

TEST_CASE("two dashes alone end the flags") {
  CHECK(train({"--"}).batch_size == 128);
  CHECK(train({"--batch_size=2", "--"}).batch_size == 2);
  CHECK(options<InspectOptions>({"inspect", "--json", "--", "--quiet"}).arguments ==
        Words{"--quiet"});
  CHECK_FALSE(options<InspectOptions>({"inspect", "--", "--quiet"}).quiet);
  CHECK(complaint({"--", "eval"}) == "unexpected 'eval'; see `towers train --help`");
}

TEST_CASE("every command takes the flags of all commands") {
  for (const Words& command :
       {Words{"train"}, {"eval"}, {"devices"}, {"download"}, {"inspect", "x"}, {"bench"}}) {
    Words args = command;
    args.insert(args.end(), {"--data_dir=d", "--dataset=synthetic", "--batch_size=3", "--quiet",
                             "--precision=fp64", "--log_level=debug", "--cpu_devices=2"});
    INFO(command.front());
    CHECK(complaint(args) == "(accepted)");
  }
}

TEST_CASE("use_fp16 is another way to say fp16") {
  CHECK(train({"--use_fp16"}).precision == "fp16");
  CHECK(train({"--use_fp16=True", "--precision=fp16"}).precision == "fp16");
  CHECK(train({"--use_fp16", "--nouse_fp16"}).precision == "fp32");
  CHECK(train({"--nouse_fp16", "--precision=bf16"}).precision == "bf16");
  CHECK(parsed({"--use_fp16"}).flagfile.find("--precision=fp16\n") != std::string::npos);
  CHECK(parsed({"--use_fp16"}).flagfile.find("use_fp16") == std::string::npos);
  CHECK(complaint({"--precision=bf16", "--use_fp16"}) ==
        "--use_fp16 and --precision=bf16 contradict each other: give --precision=fp16 alone, or "
        "leave --use_fp16 out");
  CHECK(complaint({"--use_fp16", "--precision=fp32"}) ==
        "--use_fp16 and --precision=fp32 contradict each other: give --precision=fp16 alone, or "
        "leave --use_fp16 out");
}

TEST_CASE("help and version win over everything else on the line") {
  for (const Words& args : {Words{"--version"},
                            {"-version"},
                            {"eval", "--version"},
                            {"--batch_size=0", "--version"},
                            {"--bogus", "--version=1"}}) {
    CHECK(information(args) == "the version");
  }
  CHECK(information({"--bogus", "--help"}) == information({"--help"}));
  CHECK(information({"--version", "--help"}) == information({"--help"}));
  CHECK(train({"--help=false", "--noversion"}).batch_size == 128);
  CHECK(train({"--train_dir=--help"}).train_dir == "--help");
}
