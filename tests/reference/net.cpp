#include "tests/reference/net.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <thread>

#include "tests/reference/walk.h"

namespace towers::reference {
namespace {

// A batch is cut into at most this many blocks, each summed on its own and the blocks added in
// order: the same sums for any number of threads.
constexpr int kBlocks = 16;

// Calls f(block) for block 0 .. blocks - 1, each once, on all cores.
template <class F>
void in_parallel(int blocks, const F& f) {
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int block = next++; block < blocks; block = next++) f(block);
  };
  const int threads =
      std::min(blocks, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

// Adds each weight decay's loss and gradient.
void add_weight_decay(const VariableLayout& layout, std::span<const double> variables, Pass& pass) {
  for (const Variable& v : layout.variables()) {
    if (v.weight_decay == 0) continue;
    double squares = 0;
    for (std::size_t i = v.offset; i < v.offset + v.size; ++i) {
      squares += variables[i] * variables[i];
      pass.gradients[i] += v.weight_decay * variables[i];
    }
    pass.losses.weight_losses.push_back(v.weight_decay * squares / 2);
    pass.losses.total += pass.losses.weight_losses.back();
  }
}

}  // namespace

Pass forward_backward(const Net& net, std::span<const double> variables, const Batch& batch,
                      const Decisions* forced, Operands operands) {
  const VariableLayout layout(net);
  Pass pass;
  allocate(net, static_cast<std::size_t>(batch.size()), pass);
  if (forced) pass.decisions = *forced;
  Walk walk(net, variables, batch, forced != nullptr, operands, pass);

  const int blocks = std::min(kBlocks, batch.size());
  std::vector<std::vector<double>> gradients(static_cast<std::size_t>(blocks));
  std::vector<double> losses(static_cast<std::size_t>(batch.size()));
  in_parallel(blocks, [&](int block) {
    std::vector<double>& sum = gradients[static_cast<std::size_t>(block)];
    sum.resize(layout.size());
    const int last = batch.size() * (block + 1) / blocks;
    for (int e = batch.size() * block / blocks; e < last; ++e) {
      const std::size_t example = static_cast<std::size_t>(e);
      losses[example] = walk.forward(example);
      walk.backward(example, sum.data());
    }
  });

  pass.contradiction = walk.contradiction();
  pass.gradients.resize(layout.size());
  for (const std::vector<double>& sum : gradients)
    for (std::size_t i = 0; i < sum.size(); ++i) pass.gradients[i] += sum[i];
  for (double loss : losses) pass.losses.cross_entropy += loss / batch.size();
  pass.losses.total = pass.losses.cross_entropy;
  add_weight_decay(layout, variables, pass);
  return pass;
}

double round_to_bf16(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 <= fraction < 1
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

void apply_gradients(std::span<const double> gradients, double learning_rate, double average_decay,
                     std::span<double> variables, std::span<double> averages) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    variables[i] -= learning_rate * gradients[i];
    averages[i] -= (1 - average_decay) * (averages[i] - variables[i]);
  }
}

}  // namespace towers::reference
