#pragma once
// Files of flags: "--name=value" or "--name value" a line, blank lines, comments that begin with #
// or //.

#include <functional>
#include <string>
#include <vector>

namespace towers::cli {

class FlagfileReader {
 public:
  // Calls `use` with each flag of the file, as "--name" or "--name=value", in order; it may call
  // read() again. Throws UsageError, with file and line before the message where `use` threw one: a
  // file that cannot be read or that reads itself.
  void read(const std::string& path, const std::function<void(const std::string&)>& use);

 private:
  std::vector<std::string> open_;  // the files being read, the outermost first
  int files_ = 0;                  // read so far
};

}  // namespace towers::cli
