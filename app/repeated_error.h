#pragma once
// A disk that stays full must not fill the log as well.

#include <string>

namespace towers::app {

// What to say of something that is tried again and again. Errors that differ in their digits alone
// (the step in a checkpoint's name) are one and the same.
class RepeatedError {
 public:
  // error: how the last attempt ended, empty when it went well. Returns the line for the log, empty
  // for none: the first error as it is; the same again at the 2nd, 4th, 8th, ... time, with that
  // number; another error at once.
  std::string line_for(const std::string& error);

  // Whether the attempts before the last one failed and that one did not; told once.
  bool recovered();

 private:
  std::string kind_;  // of the last error, its digits taken out; empty: none
  unsigned count_ = 0;
  bool recovered_ = false;
};

}  // namespace towers::app
