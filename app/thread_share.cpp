#include "app/thread_share.h"

#include <algorithm>

namespace towers::app {

ThreadShare share_of(const std::vector<ThreadWish>& wishes, std::size_t me, int available) {
  const int count = static_cast<int>(wishes.size());
  ThreadShare share;
  for (std::size_t p = 0; p < wishes.size(); ++p) {
    const int place = static_cast<int>(p);
    const int part = available * (place + 1) / count - available * place / count;
    const int threads =
        std::max(wishes[p].devices, wishes[p].threads != 0 ? wishes[p].threads : part);
    if (p == me) {
      share.threads = threads;
      share.first = share.total;
    }
    share.total += threads;
  }
  return share;
}

}  // namespace towers::app
