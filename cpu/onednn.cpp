#include "cpu/onednn.h"

#include <dlfcn.h>

#include "cpu/onednn_primitive.h"

namespace towers::cpu {
namespace onednn {
namespace {

// Of the OpenMP that oneDNN brings with it, whichever that is: another one's would not be asked.
using SetThreads = void (*)(int);
SetThreads set_threads() {
  static const auto function =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  return function;
}

bool holds_one_thread() {
  switch (dnnl_version()->cpu_runtime) {
    case DNNL_RUNTIME_OMP:
      return set_threads() != nullptr;
    case DNNL_RUNTIME_SEQ:
      return true;
    default:
      return false;
  }
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

void use_one_thread() {
  if (const SetThreads set = set_threads()) set(1);
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Primitive::Primitive(dnnl::primitive primitive, const Desc& scratchpad,
                     const std::vector<Argument>& arguments, int workers, Memory& memory)
    : primitive_(std::move(primitive)) {
  for (int w = 0; w < workers; ++w) {
    Worker worker{dnnl::stream(engine()), {}};
    for (const Argument& a : arguments)
      worker.arguments.emplace(a.name, dnnl::memory(a.desc, engine(), DNNL_MEMORY_NONE));
    if (scratchpad.get_size() > 0)
      worker.arguments.emplace(
          DNNL_ARG_SCRATCHPAD,
          dnnl::memory(scratchpad, engine(),
                       memory.allocate<std::byte>(scratchpad.get_size()).data()));
    workers_.push_back(std::move(worker));
  }
}

void Primitive::run(int worker, std::initializer_list<Pointer> data) {
  use_one_thread();
  Worker& own = workers_[static_cast<std::size_t>(worker)];
  for (const Pointer& p : data) own.arguments.at(p.name).set_data_handle(const_cast<void*>(p.data));
  primitive_.execute(own.stream, own.arguments);
}

}  // namespace onednn

namespace {

bool has(dnnl_cpu_isa_t instructions) {
  const auto bits = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool onednn_has_amx() {
  return has(dnnl_cpu_isa_avx512_core_amx);
}

std::string why_no_onednn() {
  if (!has(dnnl_cpu_isa_avx512_core_bf16))  // AMX has its bits too
    return "this processor has neither AVX512_BF16 nor AMX";
  if (!onednn::holds_one_thread()) return "oneDNN's threads are not OpenMP's";
  return "";
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

}  // namespace towers::cpu
