#pragma once
// What the commands print with --json.

#include <nlohmann/json.hpp>
#include <string>

namespace towers::app {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are written

// The name of a file, for a value that leads to it. Throws Error where it is not UTF-8, as JSON
// must be: a program that reads the name must find the file by it.
std::string named(const std::string& path);

// One line on stdout. Text that is not UTF-8 gets replacement characters; a number that is not
// finite is null.
void print(const Json& json);

}  // namespace towers::app
