#!/usr/bin/env bash
# scripts/gpu_check on machines made of fakes.
. "$(dirname "$0")/harness.sh"

check=$checkout/scripts/gpu_check
# pack NAME CODE: the program of that name in the pack does as the shell code says.
pack() {
  fake "$1" "$2"
  mkdir -p payload/{bin,lib,data}
  mv "bin/$1" payload/bin/
  for file in data_batch_{1,2,3,4,5} test_batch; do head -c 30730 /dev/zero >payload/data/$file.part; done
  echo 90 >payload/architectures
  tar -C payload -cf - . | xz >"$checkout/payload.tar.xz"
}
# machine TRAINER: with a GPU and a pack whose trainer does as the shell code says.
machine() {
  fake nvidia-smi "echo 'GPU 0: Fake GPU'"
  fake python3 'exit 1'
  rm -f bin/compute-sanitizer
  pack towers "$1"
  pack backend_tests_cuda "echo 'All tests passed (9 assertions in 3 test cases)'; echo"
}
works='case "$*" in
  devices*) echo "{\"description\":\"Fake GPU\"}" ;;
  bench*) echo "{\"what\":\"step\",\"examples_per_sec\":600.5,\"ms_per_step\":0.2131,\"gflops\":63.05}" ;;
  eval*) echo "2026-12-01 10:00:00.000000: precision @ 1 = 0.600" ;;
  *) for flag; do case $flag in --train_dir=*) folder=${flag#*=} ;; esac; done; mkdir -p "$folder"; echo data >"$folder/model.ckpt-39.data-00000-of-00001"
     mkdir -p "$XDG_CACHE_HOME/towers"; printf "%s\n" "first line" "key	eng1" >"$XDG_CACHE_HOME/towers/cudnn_engines"
     [ "$(stat -c %s "$TOWERS_CUDA_MODULE" 2>/dev/null || echo none)" = none ] || echo module there ;;
esac'
has_row() { grep -qE -- "$1" out || fail "no row: $1"; }

without_a_gpu_nothing_runs() {
  if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo 'skipped: there is a GPU'; exit 0; fi
  machine "$works"
  fake nvidia-smi 'exit 9'
  run 0 "$check" --out results
  has_row '^parity suite +not run +0 s +no GPU$'
  ! grep -q '^towers' calls || fail 'ran the trainer'
  grep -q '"name": "parity suite", "outcome": "not run"' results/gpu_check.json || fail 'no JSON'
}

dry_run_runs_nothing() {
  machine "$works"
  run 0 "$check" --out results --dry-run
  has_row '^parity suite +not run +0 s +dry run: about [0-9]+ s$'
  awk '/^expected in all/ { exit !($4 < 480) }' out || fail 'more than 8 minutes'
  ! grep -q '^towers' calls || fail 'ran the trainer'
}

all_parts_pass() {
  machine "$works"
  run 0 "$check" --out results
  has_row '^devices +passed +[0-9]+ s +Fake GPU$'
  has_row '^parity suite +passed +[0-9]+ s +All tests passed'
  has_row '^build +passed +[0-9]+ s +built elsewhere, for compute capability 90$'
  has_row '^CIFAR-10, 2000 steps, evaluated +passed +[0-9]+ s +precision @ 1 after 2000 steps: 0.600 on the GPU, 0.600 on the CPU$'
  has_row '^resumed bit for bit +passed'
  has_row '^engines kept in a file +passed +[0-9]+ s +1 engines kept; started in [0-9]+ s, then in [0-9]+ s$'
  has_row '^batch 128, fp32, step alone +passed +[0-9]+ s +600 examples/sec, 213.1 us a step, 0.06 TFLOP/s$'
  has_row '^batch 128, fp16, host input +passed'
  has_row '^PyTorch, batch 128, graph_cl_band +not run +[0-9]+ s +no PyTorch'
  has_row '^compute-sanitizer memcheck +not run +[0-9]+ s +no compute-sanitizer$'
  ! grep -q FAILED out || fail 'a part failed'
  grep -q '"figures": {"what":"step","examples_per_sec":600.5' results/gpu_check.json || fail 'no figures'
  grep -q '^All tests passed' results/gpu_check.log || fail 'no log'
}

a_failed_part_does_not_stop_the_others() {
  machine "echo 'towers: error: out of \"memory\"' >&2; exit 1"
  run 1 "$check" --out results
  has_row '^devices +FAILED'
  has_row '^parity suite +passed'
  has_row '^batch 128, fp32, step alone +FAILED +[0-9]+ s +towers: error: out of "memory"$'
  grep -qF '"note": "towers: error: out of \"memory\""' results/gpu_check.json || fail 'JSON without quotes'
}

skipped_cases_are_a_failure() {
  machine "$works"
  pack backend_tests_cuda "echo 'skipped: no CUDA device (reason)'"
  run 1 "$check" --out results
  has_row '^parity suite +FAILED +[0-9]+ s +cases were skipped$'
}

a_resumed_run_that_differs_is_a_failure() {
  machine "$(sed 's/echo data >/echo "$RANDOM$RANDOM" >/' <<<"$works")"
  run 1 "$check" --out results
  has_row '^resumed bit for bit +FAILED'
}

engines_that_are_not_kept_are_a_failure() {
  machine "$works
echo 'debug: engines are not kept in /cache: No space left on device' >&2"
  run 1 "$check" --out results
  has_row '^engines kept in a file +FAILED +[0-9]+ s +debug: engines are not kept'
}

what_is_not_available_is_not_run() {
  machine "case \"\$*\" in *bf16*) echo 'towers: error: --precision=bf16 needs a GPU of compute capability 8.0 or newer' >&2; exit 1 ;; esac
$works"
  run 0 "$check" --out results
  has_row '^batch 128, bf16, device input +not run +[0-9]+ s +towers: error: --precision=bf16 needs a GPU of'
}

"$1"
