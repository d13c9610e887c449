#!/usr/bin/env bash
# scripts/kernel_report with a compiler that says what it is told.
. "$(dirname "$0")/harness.sh"

report=$checkout/scripts/kernel_report
names=$(sed -n '/^cat >/,/^END$/p' "$report" | awk -F'|' 'NF == 4 { print $1 }' | sort -u)
mkdir checkout/cuda
touch checkout/cuda/x.cu

# compiler SPILLS: with one of the kernels spilling so many bytes.
compiler() {
  {
    echo "$names" | while read -r name; do
      echo "ptxas info    : Compiling entry function 'void towers::cuda::(anonymous namespace)::$name(int)' for 'sm_90'"
      echo "    0 bytes stack frame, $([ "$name" = "softmax_kernel<float>" ] && echo "$1" || echo 0) bytes spill stores, 0 bytes spill loads"
      echo "ptxas info    : Used 64 registers, used 1 barriers, 4096 bytes smem"
    done
  } >ptxas
  fake nvcc "cat '$work/ptxas' >&2"
}

registers_make_the_table() {
  compiler 0
  run 0 env -u CUDACXX "$report"
  # 1,024 threads of 64 registers are half of what a multiprocessor holds.
  grep -qE '^norm_groups_kernel<float> +as norm1, alone +64 +0 +4096 +50% +9437 +1.97$' out || fail "the table differs"
  run 0 env -u CUDACXX "$report" --batch 256 --rate 2
  grep -qE '^norm_groups_kernel<float> .* 18874 +9.44$' out || fail "batch or rate does not count"
}

spilled_registers_end() {
  compiler 24
  run 1 env -u CUDACXX "$report"
  grep -qF 'Registers are spilled: 24 bytes.' out || fail "the spills are not told"
}

a_kernel_that_is_gone_ends() {
  names=$(echo "$names" | grep -v softmax)
  compiler 0
  run 1 env -u CUDACXX "$report"
  grep -qF 'no kernel softmax_kernel' out || fail "the kernel is not named"
}

source_that_does_not_compile_ends() {
  fake nvcc 'echo "x.cu(1): error" >&2; exit 2'
  run 1 env -u CUDACXX "$report"
  said 'x.cu(1): error'
  said 'cuda/x.cu does not compile'
}

no_compiler_ends() {
  run 1 env CUDACXX=/nowhere/nvcc "$report"
  said '/nowhere/nvcc is not there; put nvcc on the PATH or name it with CUDACXX'
}

"$1"
