#pragma once
// Errors meant for the user. Those that nobody on the way can answer (another attempt, a warning)
// end in app/main.cpp as one line: what happened, to which file or flag, what to do next.

#include <stdexcept>

namespace towers {

// Something outside the program is wrong (a file, a network, a device). Ends with exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The command line is wrong. Ends with exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace towers
