// A module that lacks the exported function.
extern "C" int towers_some_other_function() {
  return 0;
}
