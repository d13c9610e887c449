#pragma once
// What an exception means to the user.

#include <string>

namespace towers::app {

struct Failure {
  int exit_code = 1;
  std::string text;  // a line
};

// Of the exception being handled.
Failure current_failure();

}  // namespace towers::app
