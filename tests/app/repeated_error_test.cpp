// What is said of an error that repeats itself.

#include <catch2/catch.hpp>

#include "app/repeated_error.h"

TEST_CASE("an error that repeats itself is told at the 1st, 2nd, 4th, 8th, ... time") {
  towers::app::RepeatedError errors;
  std::string told;
  for (int step = 1; step <= 20; ++step)
    if (!errors.line_for("model.ckpt-" + std::to_string(step) + ": full").empty())
      told += std::to_string(step) + " ";
  CHECK(told == "1 2 4 8 16 ");
  CHECK(errors.line_for("model.ckpt-21: broken") == "model.ckpt-21: broken");
  CHECK(errors.line_for("model.ckpt-22: broken") ==
        "still so, 2 times by now: model.ckpt-22: broken");
}

TEST_CASE("an error that has passed is told once, and new when it comes back") {
  towers::app::RepeatedError errors;
  CHECK(errors.line_for("").empty());
  CHECK_FALSE(errors.recovered());
  CHECK(errors.line_for("full") == "full");
  CHECK_FALSE(errors.recovered());
  CHECK(errors.line_for("").empty());
  CHECK(errors.recovered());
  CHECK_FALSE(errors.recovered());
  CHECK(errors.line_for("full") == "full");
}
