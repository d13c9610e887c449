#pragma once
// What the processor itself can do: what the figures of `towers bench` are held against.

#include "cpu/backend.h"

namespace towers::cpu {

struct Peak {
  double flops = 0;  // per second: fp32 multiply-adds (two each) on registers alone
  double bytes = 0;  // per second: read in order from 256 MB that the threads share out
};

// Measured on all threads at once that a backend of these options has, on all its devices; the best
// of several rounds, in less than half a second. Throws as make_backend does.
Peak measure_peak(const Options& options);

}  // namespace towers::cpu
