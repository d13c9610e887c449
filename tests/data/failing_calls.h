#pragma once
// System calls that fail, or that kill the process, at a chosen moment. The test program is linked
// with
// --wrap, so that every write, fsync and rename of the library under test comes by here.

namespace towers::test {

enum class Failure { error, half_write, kill };

// From now on the n-th call (from 0) fails once: with errno `error`; or, half_write, a write takes
// half of its bytes and the next call fails; or, kill, the process ends there as by kill -9.
void fail_call(int n, Failure failure, int error);
// Ends that; returns whether the chosen call was reached.
bool call_failed();

}  // namespace towers::test
