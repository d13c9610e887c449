#pragma once
// Which engine was the fastest one for a convolution on a GPU, kept in a file from run to run, so
// that only the first run times them. Knows nothing of CUDA. docs/formats/engine_cache.md has the
// format.
//
// The file only saves time, so nothing that is wrong with it is an error: it is left out with a
// line for who debugs. Calls come from one thread.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace towers::cuda {

// $XDG_CACHE_HOME/towers/cudnn_engines, or that in ~/.cache; empty where neither folder is known.
std::filesystem::path engine_cache_file();

class EngineCache {
 public:
  // debug: takes lines for who debugs, warning: for all; may be null. An empty path keeps for this
  // process alone. The file is read when the first engine is looked for.
  EngineCache(std::filesystem::path file, void (*debug)(const std::string& line),
              void (*warning)(const std::string& line) = nullptr);

  // key: one line, without tabs, of all that decides which engine is the fastest.
  std::optional<std::string> find(const std::string& key);
  // Writes the file anew, with what other processes have added meanwhile. engine: as the key.
  void keep(const std::string& key, const std::string& engine);
  // A line for who debugs: of what was chosen besides.
  void say(const std::string& line) const;
  // A line for all, once: of what lacks.
  void warn(const std::string& line);

 private:
  void read();
  void write() const;

  std::filesystem::path file_;
  void (*debug_)(const std::string& line);
  void (*warning_)(const std::string& line);
  std::set<std::string> warned_;
  bool read_ = false, foreign_ = false;  // a foreign file is not written to
  std::map<std::string, std::string> engines_;
};

}  // namespace towers::cuda
