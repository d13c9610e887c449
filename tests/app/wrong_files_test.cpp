// Files that are not what a command needs, or that it must not touch: one line, in time, and
// nothing lost.

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

// Nobody writes to it: whoever opens it to read in the usual way waits for ever.
fs::path pipe_at(const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
  return path;
}

// Ends by itself with one error line that has `part`.
void check_refused(const std::vector<std::string>& args, const std::string& part) {
  const ProcessResult result = run_towers(args, {.limit_seconds = 30});
  INFO(args.front() << ": " << result.err);
  CHECK_FALSE(result.by_signal);
  CHECK((result.exit_code == 1 || result.exit_code == 2));
  CHECK(contains(result.err, part));
}

std::size_t event_files_in(const fs::path& dir) {
  std::size_t n = 0;
  if (!fs::exists(dir)) return 0;
  for (const auto& file : fs::directory_iterator(dir))
    if (contains(file.path().filename().string(), "tfevents")) ++n;
  return n;
}

}  // namespace

TEST_CASE("a pipe where a file belongs is refused, not waited for") {
  TemporaryFolder folder;
  const fs::path dir = folder.path(), run = dir / "run";
  const fs::path pipe = pipe_at(dir / "pipe.csv");
  const std::string train_dir = "--train_dir=" + run.string();
  REQUIRE(quick_run(run, 2).exit_code == 0);
  const std::vector<std::string> eval = {"eval",
                                         "--dataset=synthetic",
                                         "--run_once",
                                         "--checkpoint_dir=" + run.string(),
                                         "--eval_dir=" + (dir / "eval").string(),
                                         "--device=cpu"};
  const std::vector<std::string> train = quick_args(run, 4, {"--resume"});
  const auto with = [](std::vector<std::string> args, const std::string& more) {
    args.push_back(more);
    return args;
  };
  check_refused({"train", "--flagfile=" + pipe.string()}, "is a pipe");
  check_refused(with(train, "--metrics_log=" + pipe.string()), "pipe.csv");
  check_refused(quick_args(dir / "new", 1, {"--init_from=" + pipe.string()}), "pipe.csv");
  check_refused({"predict", pipe.string(), "--device=cpu", "--checkpoint_dir=" + run.string()},
                "not a plain file");
  check_refused({"inspect", pipe.string()}, "pipe.csv");
  check_refused({"inspect", pipe_at(dir / "events.out.tfevents.1.a").string()}, "not a plain file");
  check_refused({"import", pipe_at(dir / "a.safetensors").string(),
                 "--train_dir=" + (dir / "imported").string()},
                "not a plain file");
  check_refused({"bench", "--device=cpu", "--csv=" + pipe.string(), "--batch_size=2"}, "pipe.csv");
  check_refused({"linear", "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2", "--job_name=ps",
                 "--cluster_token_file=" + pipe.string()},
                "");
  // The data set and its archive.
  pipe_at(dir / "data/cifar-10-batches-bin/data_batch_1.bin");
  pipe_at(dir / "archive/cifar-10-binary.tar.gz");
  for (const char* name : {"data", "archive"})
    check_refused(
        {"train", "--nodownload", "--device=cpu", "--max_steps=1",
         "--data_dir=" + (dir / name).string(), "--train_dir=" + (dir / "other").string()},
        name == std::string("data") ? "data_batch_1.bin" : "archive");
  // What lies in a train_dir, each alone.
  for (const char* name :
       {"flags.txt", "model.ckpt-1.data-00000-of-00001", "model.ckpt-1.index", "checkpoint"}) {
    INFO(name);
    fs::rename(run / name, dir / "kept");
    pipe_at(run / name);
    check_refused(train, name);
    check_refused(quick_args(run, 1), name);  // a new run: somebody else put it there
    if (name != std::string("flags.txt")) check_refused(eval, name);
    fs::rename(dir / "kept", run / name);
  }
  CHECK(run_towers(train).exit_code == 0);
}

TEST_CASE("a checkpoint that is not there is told as such") {
  TemporaryFolder folder;
  const std::string prefix = (folder.path() / "model.ckpt-7").string();
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"inspect", prefix},
        quick_args(folder.path() / "run", 1, {"--init_from=" + prefix}),
        {"export", "--checkpoint=" + prefix, "--output=" + (folder.path() / "a.onnx").string()}})
    check_refused(args, "there is no checkpoint " + prefix);
  // One that `checkpoint` names.
  write_file(folder.path() / "checkpoint", "model_checkpoint_path: \"model.ckpt-7\"\n");
  check_refused({"predict", "a.png", "--device=cpu", "--checkpoint_dir=" + folder.path().string()},
                "there is no checkpoint " + prefix);
  const fs::path other = folder.path() / "model.ckpt-3";
  write_file(other.string() + ".index", "");
  check_refused({"predict", "a.png", "--device=cpu", "--checkpoint_dir=" + folder.path().string()},
                "the newest there is " + other.string());
}

TEST_CASE("a table of predictions replaces its like alone") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", table = folder.path() / "a.csv";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const auto predict = [&] {
    return run_towers({"predict", "--dataset=synthetic", "--device=cpu",
                       "--data_dir=" + (run / "none").string(), "--checkpoint_dir=" + run.string(),
                       "--csv=" + table.string()});
  };
  write_file(table, "my,own\n1,2\n");
  const ProcessResult refused = predict();
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "not a table of predictions"));
  CHECK(read_file(table) == "my,own\n1,2\n");
  write_file(table, "");
  REQUIRE(predict().exit_code == 0);
  const std::string first = read_file(table);
  CHECK(lines_of(first).size() == 10001);
  CHECK(predict().exit_code == 0);
  CHECK(read_file(table) == first);
}

TEST_CASE("a table of predictions that cannot be written is told before the evaluation") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", kept = folder.path() / "kept";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  fs::create_directories(kept);
  for (const std::string& table : {kept.string(), (folder.path() / "none" / "a.csv").string()}) {
    CAPTURE(table);
    // The data set is looked for after that.
    check_refused({"predict", "--device=cpu", "--nodownload",
                   "--data_dir=" + (folder.path() / "none").string(),
                   "--checkpoint_dir=" + run.string(), "--csv=" + table},
                  "cannot write " + table);
  }
  CHECK(fs::is_empty(kept));
}

TEST_CASE("export writes to files alone") {
  const ProcessResult refused = run_towers({"export", "--checkpoint=none", "--output=-"});
  CHECK(refused.exit_code == 2);
  CHECK(lines_of(refused.err).size() == 1);
  CHECK(contains(refused.err, "--output=-"));
}

TEST_CASE("what fails before its first number leaves no event file") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", eval = folder.path() / "eval";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const std::size_t before = event_files_in(run);
  // A model of another kind, for both.
  check_refused({"linear", "--checkpoint_dir=" + run.string()}, "of another model");
  CHECK(event_files_in(run) == before);
  write_file(run / "model.ckpt-0.index", "damaged");
  check_refused({"eval", "--dataset=synthetic", "--device=cpu", "--run_once",
                 "--checkpoint_dir=" + run.string(), "--eval_dir=" + eval.string()},
                "model.ckpt-0.index");
  CHECK(event_files_in(eval) == 0);
}

TEST_CASE("a new run deletes neither an imported model nor a line") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", line = folder.path() / "line";
  const fs::path file = folder.path() / "a.safetensors", imported = folder.path() / "imported";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  REQUIRE(run_towers({"linear", "--max_steps=20", "--checkpoint_dir=" + line.string()}).exit_code ==
          0);
  REQUIRE(run_towers({"export", "--checkpoint=" + run.string(), "--output=" + file.string()})
              .exit_code == 0);
  REQUIRE(run_towers({"import", file.string(), "--train_dir=" + imported.string()}).exit_code == 0);
  fs::remove(imported / "flags.txt");  // as of a file that others wrote
  for (const fs::path& dir : {line, imported}) {
    const auto bytes = read_file(dir / "checkpoint");
    check_refused(quick_args(dir, 1), "no flags.txt");
    CHECK(read_file(dir / "checkpoint") == bytes);
  }
  CHECK(quick_run(imported, 2, {"--resume"}).exit_code == 0);
}

TEST_CASE("import writes over nothing, and into no folder in use") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", file = folder.path() / "a.safetensors";
  REQUIRE(quick_run(run, 2).exit_code == 0);
  REQUIRE(run_towers({"export", "--checkpoint=" + run.string(), "--output=" + file.string()})
              .exit_code == 0);
  const auto import = [&](const fs::path& output) {
    return std::vector<std::string>{"import", file.string(), "--output=" + output.string()};
  };
  const std::string before = checkpoint_bytes(run, 1);
  check_refused(import(run / "model.ckpt-1"), "this checkpoint exists and was not touched");
  CHECK(checkpoint_bytes(run, 1) == before);
  CHECK(run_towers(import(run / "variables")).exit_code == 0);

  const fs::path busy = folder.path() / "busy";
  Process training(quick_args(busy, 1'000'000));
  REQUIRE(training.wait_for_output("step 0,"));
  check_refused(import(busy / "variables"), "a running training");
  check_refused({"import", file.string(), "--train_dir=" + busy.string()}, "in use");
  CHECK_FALSE(fs::exists(busy / "variables.index"));

  fs::create_directory(folder.path() / "own");
  write_file(folder.path() / "own/flags.txt", "--batch_size=3\n");
  check_refused({"import", file.string(), "--train_dir=" + (folder.path() / "own").string()},
                "flags.txt exists already");
  CHECK(read_file(folder.path() / "own/flags.txt") == "--batch_size=3\n");
}
