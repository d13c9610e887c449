#pragma once
// What an exception means to the user.

#include <exception>
#include <string>

namespace towers::app {

struct Failure {
  int exit_code = 1;
  std::string text;  // a line
};

// Thrown where the line has been said already: the program ends with exit_code.
struct SaidFailure : std::exception {
  explicit SaidFailure(int code) : exit_code(code) {}
  const char* what() const noexcept override { return "said already"; }
  int exit_code;
};

// Of the exception being handled; the text is empty where it has been said.
Failure current_failure();

}  // namespace towers::app
