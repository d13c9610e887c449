#pragma once
// oneDNN's primitives as the layers of cpu/onednn.h use them.

#include <initializer_list>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "cpu/memory.h"

namespace towers::cpu::onednn {

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

const dnnl::engine& engine();

// oneDNN shares its work out over OpenMP's threads. From here on the calling thread has one of
// them, itself; what is compiled on such a thread is compiled for one.
void use_one_thread();

// Of every primitive: its scratch memory is ours.
dnnl::primitive_attr attributes();

// What P is to compute, from oneDNN's arguments for it. Version 2 gathers them in a description of
// its own first.
template <class P, class... Arguments>
typename P::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., attributes()};
#else
  return {typename P::desc(arguments...), attributes(), engine()};
#endif
}

// The same for a backward pass, which follows the choices of `forward`.
template <class P, class Forward, class... Arguments>
typename P::primitive_desc describe_backward(const Forward& forward,
                                             const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., forward, attributes()};
#else
  return {typename P::desc(arguments...), attributes(), engine(), forward};
#endif
}

// A primitive that several workers may run at once. What it reads and writes goes by oneDNN's names
// (DNNL_ARG_SRC, ...).
class Primitive {
 public:
  struct Argument {
    int name;
    Desc desc;
  };
  struct Pointer {
    int name;
    const void* data;
  };

  Primitive() = default;
  Primitive(dnnl::primitive primitive, const Desc& scratchpad,
            const std::vector<Argument>& arguments, int workers, Memory& memory);

  // `data` points to the values of each argument.
  void run(int worker, std::initializer_list<Pointer> data);

 private:
  struct Worker {
    dnnl::stream stream;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  dnnl::primitive primitive_;
  std::vector<Worker> workers_;
};

template <class P>
Primitive make_primitive(const typename P::primitive_desc& compiled,
                         const std::vector<Primitive::Argument>& arguments, int workers,
                         Memory& memory) {
  return {P(compiled), compiled.scratchpad_desc(), arguments, workers, memory};
}

// make(), which compiles primitives; oneDNN's errors become ours.
template <class Make>
auto compiled(const std::string& what, Make make) {
  use_one_thread();
  try {
    return make();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw Error("oneDNN cannot compute " + what + " in bf16 (" + error.message +
                "); --precision=fp32 does without it");
  }
}

}  // namespace towers::cpu::onednn
