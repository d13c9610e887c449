#include "app/failure.h"

#include <exception>
#include <new>

#include "core/error.h"

namespace towers::app {

Failure current_failure() {
  try {
    throw;
  } catch (const SaidFailure& said) {
    return {said.exit_code, ""};
  } catch (const UsageError& error) {
    return {2, error.what()};
  } catch (const std::bad_alloc&) {
    return {1, "out of memory; a smaller --batch_size or --num_gpus needs less"};
  } catch (const std::exception& error) {
    return {1, error.what()};
  }
}

}  // namespace towers::app
