#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "core/error.h"
#include "data/checkpoint.h"
#include "data/file.h"
#include "protos/checkpoint_state.pb.h"

namespace towers::data {
namespace {

// Keeps the first fault that the parser finds (lines and columns come from 0).
class FirstFault : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty())
      text = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
             message;
  }
  std::string text;
};

bool is_checkpoint(const std::filesystem::path& prefix) {
  std::filesystem::path index = prefix;
  index += ".index";
  std::error_code ignored;
  return std::filesystem::exists(index, ignored);
}

// The prefix that the state file means by `name`: as it says, or, where that leads nowhere, the
// file of that name beside the state file.
std::filesystem::path resolve(const std::filesystem::path& dir, const std::filesystem::path& name) {
  const std::filesystem::path said = name.is_absolute() ? name : dir / name;
  if (is_checkpoint(said)) return said;
  const std::filesystem::path beside = dir / name.filename();
  return is_checkpoint(beside) ? beside : said;
}

// `prefix` relative to `dir` when it lies inside, else absolute.
std::string written_name(const std::filesystem::path& dir, const std::filesystem::path& prefix) {
  const std::filesystem::path below = path_below(dir, prefix);
  return below.empty() ? std::filesystem::absolute(prefix).lexically_normal().string()
                       : below.string();
}

}  // namespace

CheckpointState read_checkpoint_state(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / kStateFile;
  CheckpointState state;
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found)
    return state;

  proto::CheckpointState text;
  FirstFault fault;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&fault);
  parser.AllowUnknownField(true);  // of later versions
  const bool parsed = parser.ParseFromString(read_whole_file(path), &text);
  if (!parsed || text.model_checkpoint_path().empty())
    throw Error(path.string() + " is damaged (" +
                (parsed ? std::string("no model_checkpoint_path") : fault.text) +
                "): mend it, or name the checkpoint itself");

  const std::filesystem::path latest = text.model_checkpoint_path();
  state.latest = resolve(dir, latest);
  if (latest.is_absolute() && state.latest != latest)
    state.warning = path.string() + " names " + latest.string() + ", which is not there: using " +
                    state.latest.string() + " instead";
  for (const std::string& name : text.all_model_checkpoint_paths()) {
    std::filesystem::path prefix = resolve(dir, name);
    const bool known = std::find(state.all.begin(), state.all.end(), prefix) != state.all.end();
    if (is_checkpoint(prefix) && !known) state.all.push_back(std::move(prefix));
  }
  // Other writers may list the latest alone.
  const bool listed =
      std::find(state.all.begin(), state.all.end(), state.latest) != state.all.end();
  if (is_checkpoint(state.latest) && !listed) state.all.push_back(state.latest);
  return state;
}

void write_checkpoint_state(const std::filesystem::path& dir, const CheckpointState& state) {
  proto::CheckpointState text;
  text.set_model_checkpoint_path(written_name(dir, state.latest));
  for (const std::filesystem::path& prefix : state.all)
    text.add_all_model_checkpoint_paths(written_name(dir, prefix));
  std::string content;
  google::protobuf::TextFormat::PrintToString(text, &content);
  AtomicFile file(dir / kStateFile);
  file.write(content);
  file.commit();
}

}  // namespace towers::data
