#include "cli/list_values.h"

namespace towers::cli {

std::string write_list(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& element : list) text += (text.empty() ? "" : ",") + element;
  return text;
}

std::string expected_whole_list(const std::string& lowest, const std::string& highest) {
  return "whole numbers in plain digits, " + lowest + " to " + highest +
         ", with commas between them";
}

std::string expected_choice_list(const std::vector<std::string>& choices) {
  return "one or more of " + expected_choice(choices) + ", with commas between them";
}

}  // namespace towers::cli
