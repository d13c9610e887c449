#include "cpu/timed_tower.h"

#include "core/error.h"
#include "core/variables.h"
#include "cpu/layer_clock.h"
#include "cpu/machine.h"
#include "cpu/plan.h"

namespace towers::cpu {

class TimedTower::Impl {
 public:
  Impl(const Options& options, const Net& net, const CompileOptions& compile)
      : layers_(net.layers.size()),
        layout_(net),
        machine_(options),
        clock_(layers_, pool().threads()),
        plan_(net, layout_, {compile.batch_size, true, choose_arithmetic(compile)},
              machine_.kernels(), pool(), &clock_),
        variables_(layout_.size()),
        gradients_(layout_.size()) {
    initialize_variables(layout_, 1, variables_);
  }

  void run(const Batch& batch) {
    pool().run([&] {
      plan_.prepare(variables_);
      plan_.gradients(batch, false, gradients_);
    });
    ++passes_;
  }

  void reset() {
    clock_.reset();
    passes_ = 0;
  }

  std::vector<LayerTime> times() const {
    std::vector<LayerTime> times;
    for (std::size_t l = 0; l < layers_; ++l) {
      const LayerTime time{l, clock_.seconds(Pass::forward, l) / passes_,
                           clock_.seconds(Pass::backward, l) / passes_};
      if (time.forward > 0) times.push_back(time);
    }
    return times;
  }

 private:
  ThreadPool& pool() { return machine_.pool(0); }

  std::size_t layers_;
  VariableLayout layout_;
  Machine machine_;
  LayerClock clock_;
  Plan plan_;
  std::vector<float> variables_, gradients_;
  double passes_ = 0;
};

TimedTower::TimedTower(const Options& options, const Net& net, const CompileOptions& compile) {
  if (compile.precision != Precision::fp32 && compile.precision != Precision::bf16)
    throw Error("--what=layers is there for --precision=fp32 and bf16 alone");
  impl_ = std::make_unique<Impl>(options, net, compile);
}
TimedTower::~TimedTower() = default;
void TimedTower::run(const Batch& batch) {
  impl_->run(batch);
}
void TimedTower::reset() {
  impl_->reset();
}
std::vector<LayerTime> TimedTower::times() const {
  return impl_->times();
}

}  // namespace towers::cpu
