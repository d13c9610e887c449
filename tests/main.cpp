#define CATCH_CONFIG_MAIN  // of Catch2 2; version 3 has a library with `main`
#include <catch2/catch.hpp>
