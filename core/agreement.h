#pragma once
// What the ranks of a run tell each other before whatever all of them do together.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/collective.h"

namespace towers {

struct RankFailure {
  int exit_code = 1;  // 2: thrown as UsageError
  std::string text;   // a line
  std::string where;  // "rank 1 on node7"
};

// Every rank's `number`. Where some come with a failure, throws on all ranks the text of the first
// of them, preceded by its `where`; where all have failed, each throws its own text. A rank that
// has failed calls this next, and so meets the others at whatever they do together, for that begins
// with it.
std::vector<std::int32_t> agree(Collective& collective, std::int32_t number,
                                const RankFailure* failure = nullptr);

// `all` has as many bytes for each rank, of which this one has filled in its own; afterwards every
// rank has all.
void gather_equal(Collective& collective, std::span<std::byte> all);

// Every rank's text, of any length.
std::vector<std::string> gather_texts(Collective& collective, const std::string& mine);

}  // namespace towers
