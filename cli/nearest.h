#pragma once
// What somebody who mistyped a name probably meant.

#include <string>
#include <string_view>
#include <vector>

namespace towers::cli {

// Number of insertions, deletions, replacements and swaps of neighbours that turn one into the
// other (optimal string alignment distance).
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, the first of equals; empty where none is near. Capitals and
// dashes in place of underscores cost nothing, and a word that is part of a candidate is near to
// it.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace towers::cli
