#pragma once
// The flags of the ranks of one run: which have to be equal, and what each takes of its machine.

#include "app/ranks.h"
#include "cli/options.h"
#include "cli/parse.h"

namespace towers::app {

// Throws UsageError, naming the flag, where a flag that changes numbers or files is not the same on
// all ranks; a vector target that --simd=auto chooses is one of them.
void require_equal_flags(Ranks& ranks, const cli::CommonOptions& options,
                         const cli::Parsed& parsed);

// `flagfile` and `leaders`, lines of "--name=value": the first flag that differs and has to be the
// same, as a line for the user; empty where none does.
std::string unequal_flag(const std::string& flagfile, const std::string& leaders);

// Where the launcher has left several ranks the same processors, each takes its share of them:
// --compute_threads unless given, and with --pin_threads other processors than the others. Throws
// UsageError where there are too few to pin to.
void share_threads(Ranks& ranks, cli::CommonOptions& options);

}  // namespace towers::app
