// A module that lacks the exported function.
extern "C" __attribute__((visibility("default"))) int towers_some_other_function() {
  return 0;
}
