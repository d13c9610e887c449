#pragma once
// The flags of the ranks of one run: which have to be equal, and what each takes of its machine.

#include "app/ranks.h"
#include "cli/options.h"
#include "cli/parse.h"

namespace towers::app {

// --simd, or what "auto" chooses here.
std::string chosen_simd(const cli::CommonOptions& options);

// Throws UsageError, naming the flag, where a flag that changes numbers or files is not the same on
// all ranks.
void require_equal_flags(Ranks& ranks, const cli::Parsed& parsed);

// The same of what machines make of --simd=auto and of bf16: of ranks that train on CPUs.
void require_equal_arithmetic(Ranks& ranks, const cli::CommonOptions& options);

// Where the launcher has left several ranks the same processors, each takes its share of them:
// --compute_threads unless given, and with --pin_threads other processors than the others. Throws
// UsageError where there are too few to pin to.
void share_threads(Ranks& ranks, cli::CommonOptions& options);

}  // namespace towers::app
