#include "core/agreement.h"

#include <algorithm>

#include "core/error.h"
#include "core/trace.h"

namespace towers {
namespace {

struct Status {                // of a rank
  std::int32_t exit_code = 0;  // not 0: failed
  std::int32_t number = 0;
  std::uint64_t text_size = 0;  // of what is said of a failure
};

}  // namespace

std::vector<std::int32_t> agree(Collective& collective, std::int32_t number,
                                const RankFailure* failure) {
  const TraceSpan span("agree");
  std::vector<Status> all(static_cast<std::size_t>(collective.ranks()));
  Status& mine = all[static_cast<std::size_t>(collective.rank())];
  mine.number = number;
  // Both, for who speaks knows the others only afterwards.
  std::string placed;
  if (failure != nullptr) {
    placed = failure->where + ": " + failure->text;
    mine.exit_code = failure->exit_code;
    mine.text_size = placed.size();
  }
  gather_equal(collective, std::as_writable_bytes(std::span(all)));
  const auto failed = [](const Status& status) { return status.exit_code != 0; };
  const auto first = std::find_if(all.begin(), all.end(), failed);
  if (first == all.end()) {
    std::vector<std::int32_t> numbers;
    for (const Status& status : all) numbers.push_back(status.number);
    return numbers;
  }
  const auto speaker = static_cast<int>(first - all.begin());
  std::string text = std::move(placed);
  text.resize(first->text_size);
  collective.broadcast(std::as_writable_bytes(std::span(text)), speaker);
  if (std::all_of(all.begin(), all.end(), failed)) text = failure->text;
  if (first->exit_code == 2) throw UsageError(text);
  throw Error(text);
}

void gather_equal(Collective& collective, std::span<std::byte> all) {
  const auto ranks = static_cast<std::size_t>(collective.ranks());
  std::vector<Collective::Part> parts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) parts[r] = {r * (all.size() / ranks), all.size() / ranks};
  collective.all_gather(all.data(), parts);
}

std::vector<std::string> gather_texts(Collective& collective, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(collective.ranks());
  const auto rank = static_cast<std::size_t>(collective.rank());
  std::vector<std::size_t> sizes(ranks);
  sizes[rank] = mine.size();
  gather_equal(collective, std::as_writable_bytes(std::span(sizes)));
  std::vector<Collective::Part> parts(ranks);
  std::size_t end = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    parts[r] = {end, sizes[r]};
    end += sizes[r];
  }
  std::string all(end, '\0');
  std::copy(mine.begin(), mine.end(),
            all.begin() + static_cast<std::ptrdiff_t>(parts[rank].offset));
  collective.all_gather(reinterpret_cast<std::byte*>(all.data()), parts);
  std::vector<std::string> texts;
  for (const Collective::Part& part : parts) texts.push_back(all.substr(part.offset, part.size));
  return texts;
}

}  // namespace towers
