// A shared library that is there and can do nothing.
extern "C" int towers_test_library() {
  return 0;
}
