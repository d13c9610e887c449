#!/usr/bin/env bash
# scripts/gpu_check on machines made of fakes.
. "$(dirname "$0")/harness.sh"

check=$checkout/scripts/gpu_check
# machine TRAINER: with a GPU and a pack whose trainer does as the shell code says.
machine() {
  fake nvidia-smi "echo 'GPU 0: Fake GPU'"
  fake python3 'exit 1'
  rm -f bin/compute-sanitizer
  fake towers "$1"
  fake backend_tests_cuda "echo 'All tests passed (9 assertions in 3 test cases)'; echo"
  mkdir -p "$checkout/build/gpu_pack/bin"
  mv bin/towers bin/backend_tests_cuda "$checkout/build/gpu_pack/bin/"
}
works='case "$*" in
  devices*) echo "{\"description\":\"Fake GPU\"}" ;;
  *) for flag; do case $flag in --train_dir=*) folder=${flag#*=} ;; esac; done; mkdir -p "$folder"; echo data >"$folder/model.ckpt-39.data-00000-of-00001"
     for rate in 1.0 500.5 700.5 600.5; do echo "2026-12-01 10:00:00.000000: step 10, loss = 4.00 ($rate examples/sec; 0.001 sec/batch)"; done
     echo "2026-12-01 10:00:00.000000: precision @ 1 = 0.600" ;;
esac'
has_row() { grep -qE -- "$1" out || fail "no row: $1"; }

without_a_gpu_nothing_runs() {
  if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo 'skipped: there is a GPU'; exit 0; fi
  machine "$works"
  fake nvidia-smi 'exit 9'
  run 0 "$check" --out results
  has_row '^parity suite +not run +0 s +no CUDA device$'
  ! grep -q '^towers' calls || fail 'ran the trainer'
  grep -q '"name": "parity suite", "outcome": "not run"' results/gpu_check.json || fail 'no JSON'
}

dry_run_runs_nothing() {
  machine "$works"
  run 0 "$check" --out results --dry-run
  has_row '^parity suite +not run +0 s +dry run$'
  ! grep -q '^towers' calls || fail 'ran the trainer'
}

all_parts_pass() {
  machine "$works"
  run 0 "$check" --out results
  has_row '^devices +passed +[0-9]+ s +Fake GPU$'
  has_row '^parity suite +passed +[0-9]+ s +All tests passed'
  has_row '^synthetic data, 400 steps +passed +[0-9]+ s +precision @ 1 = 0.600$'
  has_row '^resumed bit for bit +passed'
  has_row '^batch 128, fp32 +passed +[0-9]+ s +600.5 examples/sec$'
  has_row '^PyTorch, batch 128, fp32 +not run +[0-9]+ s +no PyTorch'
  has_row '^compute-sanitizer memcheck +not run +[0-9]+ s +no compute-sanitizer$'
  ! grep -q FAILED out || fail 'a part failed'
}

a_failed_part_does_not_stop_the_others() {
  machine "echo 'towers: error: out of \"memory\"' >&2; exit 1"
  run 1 "$check" --out results
  has_row '^devices +FAILED'
  has_row '^parity suite +passed'
  has_row '^batch 128, fp32 +FAILED +[0-9]+ s +towers: error: out of "memory"$'
  grep -qF '"note": "towers: error: out of \"memory\""' results/gpu_check.json || fail 'JSON without quotes'
}

skipped_cases_are_a_failure() {
  machine "$works"
  fake backend_tests_cuda "echo 'skipped: no CUDA device (reason)'"
  mv bin/backend_tests_cuda "$checkout/build/gpu_pack/bin/"
  run 1 "$check" --out results
  has_row '^parity suite +FAILED +[0-9]+ s +cases were skipped$'
}

a_resumed_run_that_differs_is_a_failure() {
  machine "$(sed 's/echo data >/echo "$RANDOM$RANDOM" >/' <<<"$works")"
  run 1 "$check" --out results
  has_row '^resumed bit for bit +FAILED'
}

what_is_not_available_is_not_run() {
  machine "case \"\$*\" in *bf16*) echo 'towers: error: --precision=bf16 is not available on GPUs yet' >&2; exit 1 ;; esac
$works"
  run 0 "$check" --out results
  has_row '^batch 128, bf16 +not run +[0-9]+ s +towers: error: --precision=bf16 is not available'
}

"$1"
