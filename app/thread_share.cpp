#include "app/thread_share.h"

#include <algorithm>

namespace towers::app {

ThreadShare share_of(const std::vector<int>& given, std::size_t me, int available) {
  const int count = static_cast<int>(given.size());
  ThreadShare share;
  for (std::size_t p = 0; p < given.size(); ++p) {
    const int place = static_cast<int>(p);
    const int part = available * (place + 1) / count - available * place / count;
    const int threads = given[p] != 0 ? given[p] : std::max(1, part);
    if (p == me) {
      share.threads = threads;
      share.first = share.total;
    }
    share.total += threads;
  }
  return share;
}

}  // namespace towers::app
