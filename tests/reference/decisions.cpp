#include <cstddef>

#include "tests/reference/layers.h"
#include "tests/reference/net.h"
#include "tests/reference/walk.h"

namespace towers::reference {

Decisions decisions_of(
    const Net& net, const Batch& batch,
    const std::function<std::span<const float>(const std::string& layer)>& output) {
  const std::vector<Extent> extents = output_extents(net);
  const std::size_t size = static_cast<std::size_t>(batch.size());
  Pass pass;
  allocate(net, size, pass);
  for (std::size_t l = 0; l + 1 < net.layers.size(); ++l) {
    const Layer& layer = net.layers[l];
    const Extent in = l == 0 ? net.input : extents[l - 1];
    std::vector<double>& y = pass.outputs[l];
    if (std::holds_alternative<Convolution>(layer.op) || std::holds_alternative<Dense>(layer.op)) {
      const std::span<const float> given = output(layer.name);
      y.assign(given.begin(), given.end());
      for (std::size_t i = 0; i < pass.decisions.relu[l].size(); ++i)
        pass.decisions.relu[l][i] = !(y[i] <= 0);
      continue;
    }
    for (std::size_t e = 0; e < size; ++e) {
      const double* x = (l == 0 ? batch.images : pass.outputs[l - 1]).data() + e * in.size();
      double* out = y.data() + e * extents[l].size();
      if (const auto* p = std::get_if<MaxPool>(&layer.op)) {
        std::int32_t* winner = pass.decisions.pool[l].data() + e * extents[l].size();
        max_pool_winners(*p, in, x, winner);
        gather(extents[l].size(), winner, x, out);
      } else if (const auto* n = std::get_if<LocalResponseNorm>(&layer.op)) {
        local_response_norm_forward(*n, in, x, out);
      }
    }
  }
  return pass.decisions;
}

}  // namespace towers::reference
