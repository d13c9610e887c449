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
  pack gpu_rates 'echo "{\"fp32\": 0.6305, \"fp16\": 9, \"bf16\": 10.0, \"conv2_batch\": 2048, \"conv2_forward\": 5.0, \"conv2_input_gradient\": 4.04, \"conv2_weight_gradient\": 3.0}"'
  pack backend_tests_cuda 'echo "All tests passed (9 assertions in 3 test cases)${NVIDIA_TF32_OVERRIDE:+, TF32 forced}"; echo'
}
export FAKE_GPUS='"/gpu:0"'
works='case "$*" in
  devices*) echo "{\"names\":[$FAKE_GPUS],\"description\":\"Fake GPU\"}" ;;
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
  has_row '^parity suite +passed +[0-9]+ s +All tests passed \(9 assertions in 3 test cases\)$'
  has_row '^fp32 where NVIDIA_TF32_OVERRIDE=1 +passed +[0-9]+ s +All tests passed \(9 .*\), TF32 forced$'
  grep -qF 'backend_tests_cuda|dense layers of odd sizes,' calls || fail 'the whole suite ran twice'
  has_row '^build +passed +[0-9]+ s +built elsewhere, for compute capability 90$'
  has_row '^CIFAR-10, 2000 steps, evaluated +passed +[0-9]+ s +precision @ 1 after 2000 steps: 0.600 on the GPU, 0.600 on the CPU$'
  has_row '^resumed bit for bit +passed'
  has_row '^engines kept in a file +passed +[0-9]+ s +1 engines kept; started in [0-9]+ s, then in [0-9]+ s$'
  has_row '^batch 128, fp32, step alone +passed +[0-9]+ s +600 examples/sec, 213.1 us a step, 0.06 TFLOP/s, 10.0 % of the matrix rate in fp32$'
  has_row '^batch 128, TF32, step alone +passed +[0-9]+ s +600 examples/sec, 213.1 us a step, 0.06 TFLOP/s$'
  has_row '^matrix units, conv2 at batch 2048 +passed +[0-9]+ s +bf16 10.0 TFLOP/s; of it conv2 at batch 2048: forward 50 %, input gradient 40 %, weight gradient 30 %$'
  has_row '^batch 128, fp16, host input +passed'
  has_row '^PyTorch, batch 128, graph_cl_band +not run +[0-9]+ s +no PyTorch'
  for part in 'two GPUs and one' 'two processes and one' 'all GPUs, bf16'; do has_row "^$part.* +not run +[0-9]+ s +one GPU$"; done
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

# A trainer that fails where its arguments match.
failing_at() { printf 'case "$*" in %s) echo "towers: error: on purpose" >&2; exit 1 ;; esac\n%s\n' "$1" "$works"; }

each_part_may_fail_alone() {
  local arguments rows
  while read -r rows arguments; do
    machine "$(failing_at "$arguments")"
    run 1 "$check" --out results
    [ "$(grep -c '"outcome": "FAILED"' results/gpu_check.json)" = "$rows" ] || fail "not $rows failed for $arguments"
    has_row '^compute-sanitizer initcheck +not run'
  done <<'END'
1 eval*
1 *--dataset=synthetic*--deterministic*
3 bench*--allow_tf32*
END
  machine "$works"
  pack gpu_rates 'echo "{\"fp32\": 0.6305, "; exit 1'
  run 1 "$check" --out results
  has_row '^matrix units, conv2 at batch 2048 +FAILED'
  has_row '^batch 128, bf16, step alone +passed +[0-9]+ s +600 examples/sec, 213.1 us a step, 0.06 TFLOP/s$'
}

a_cut_run_leaves_whole_json() {
  machine "$(failing_at 'eval*) sleep 30 ;; never')"
  timeout 8 "$check" --out results >out 2>&1 || true
  has_row '^parity suite +passed'
  ! grep -q 'evaluated' out || fail 'was not cut'
  env -i /usr/bin/python3 -c 'import json; assert json.load(open("results/gpu_check.json"))["parts"][2]["outcome"] == "passed"' ||
    fail 'the JSON is not whole'
}

figures_that_are_no_json_are_left_out() {
  machine "$(sed 's/\(bench.*\)echo.*;;/\1echo "{\\"examples_per_sec\\": 1, cut" ;;/' <<<"$works")"
  run 1 "$check" --out results
  env -i /usr/bin/python3 -m json.tool results/gpu_check.json >json || fail 'the JSON is not whole'
}

others_keep_their_libraries() {
  machine "$works"
  fake python3 'echo "libraries: $LD_LIBRARY_PATH" >>python; exit 1'
  run 0 "$check" --out results
  ! grep -q payload python && ! grep -q 'tmp\..*/lib' python || fail 'python3 was given the pack'"'"'s libraries'
}

what_cannot_be_built_is_not_run() {
  fake nvidia-smi "echo 'GPU 0: Fake GPU'"
  fake python3 'exit 1'
  fake cmake 'echo "CMake Error: on purpose" >&2; exit 1'
  run 1 "$check" --out results
  has_row '^build +FAILED +[0-9]+ s +CMake Error: on purpose$'
  has_row '^parity suite +not run +0 s +not built$'
}

a_long_build_takes_no_time_from_the_others() {
  machine "$works"
  rm "$checkout/payload.tar.xz"
  local build=$checkout/build/gpu
  mkdir -p "$build"/tests/{backend,cuda}
  cp payload/bin/towers "$build"
  cp payload/bin/backend_tests_cuda "$build/tests/backend"
  cp payload/bin/gpu_rates "$build/tests/cuda"
  echo 'TOWERS_MPI_LACKED:INTERNAL=ON' >"$build/CMakeCache.txt"
  fake cmake 'sleep 6'  # twice: to configure and to build
  for tool in ninja g++; do fake $tool ''; done
  sed -i 's/^time_limit=470/time_limit=15/' "$checkout/scripts/gpu_check"
  TOWERS_DATA=$work/none run 0 "$check" --out results
  has_row '^build +passed'
  has_row '^devices +passed'
}

a_damaged_pack_is_not_run() {
  machine "$works"
  echo damaged >"$checkout/payload.tar.xz"
  run 0 "$check" --out results
  has_row '^parity suite +not run +0 s +payload.tar.xz cannot be unpacked'
}

skipped_cases_are_a_failure() {
  machine "$works"
  pack backend_tests_cuda "echo 'skipped: no CUDA device (reason)'"
  run 1 "$check" --out results
  has_row '^parity suite +FAILED +[0-9]+ s +cases were skipped: no CUDA device \(reason\)$'
}

a_resumed_run_that_differs_is_a_failure() {
  machine "$(sed 's/echo data >/echo "$RANDOM$RANDOM" >/' <<<"$works")"
  run 1 "$check" --out results
  has_row '^resumed bit for bit +FAILED'
}

# A machine with two GPUs and an mpirun that does as the shell code says.
two_gpus() {
  FAKE_GPUS='"/gpu:0","/gpu:1"'
  fake mpirun "$1"
  machine "$works"
}
with_mpi_module() { mkdir -p payload/bin; touch payload/bin/libtowers_mpi.so; }

several_gpus_are_compared() {
  with_mpi_module
  two_gpus 'shift 2; "$@"'
  run 0 "$check" --out results
  has_row '^two GPUs and one, same bytes +passed +[0-9]+ s +step 39 is the same, byte for byte, on two GPUs and on one$'
  has_row '^two processes and one, same bytes +passed +[0-9]+ s +step 39 is the same'
  has_row '^all GPUs, bf16, step alone +passed +[0-9]+ s +600 examples/sec'
  grep -qE '^mpirun\|-np\|2\|env\|.*\|--device=gpu\|.*\|--num_gpus=1\|' calls || fail 'mpirun was not asked for two processes'
}

two_processes_that_differ_are_a_failure() {
  with_mpi_module
  two_gpus 'shift 2; "$@"; for flag; do case $flag in --train_dir=*) echo other >"${flag#*=}/model.ckpt-39.data-00000-of-00001" ;; esac; done'
  run 1 "$check" --out results
  has_row '^two processes and one, same bytes +FAILED'
}

two_processes_need_mpi() {
  two_gpus 'exit 1'
  run 0 "$check" --out results
  has_row '^two GPUs and one, same bytes +passed'
  has_row '^two processes and one, same bytes +not run +[0-9]+ s +no MPI module in this build$'
}

engines_that_are_not_kept_are_a_failure() {
  machine "$works
echo 'debug: engines are not kept in /cache: No space left on device' >&2"
  run 1 "$check" --out results
  has_row '^engines kept in a file +FAILED +[0-9]+ s +debug: engines are not kept'
}

convolutions_that_are_not_cudnns_are_a_failure() {
  machine "case \"\$*\" in train*--max_steps=2000* | bench*) echo 'warning: cuDNN has no engine that runs here in fp32 for conv1 (forward)' >&2 ;; esac
$works"
  run 1 "$check" --out results
  for part in 'CIFAR-10, 2000 steps, evaluated' 'batch 128, fp32, step alone' 'batch 128, fp16, host input'; do
    has_row "^$part +FAILED +[0-9]+ s +warning: cuDNN has no engine that runs here in fp32 for conv1 \(forward\)$"
  done
  has_row '^resumed bit for bit +passed'
}

what_computes_each_layer_is_in_the_log() {
  machine "case \"\$*\" in *--log_level=debug*) echo \"debug: conv1, refused: some engines, by \$1 \$(grep -o -e '--precision=.*' <<<\"\$*\")\" >&2 ;; esac
$works"
  run 0 "$check" --out results
  for what in 'train $' 'bench --precision=bf16'; do
    grep -q "^debug: conv1, refused: some engines, by $what" results/gpu_check.log || fail "no engines of $what"
  done
}

what_is_not_available_is_not_run() {
  machine "case \"\$*\" in *bf16*) echo 'towers: error: --precision=bf16 needs a GPU of compute capability 8.0 or newer' >&2; exit 1 ;; esac
$works"
  run 0 "$check" --out results
  has_row '^batch 128, bf16, device input +not run +[0-9]+ s +towers: error: --precision=bf16 needs a GPU of'
}

"$1"
