#!/usr/bin/env bash
# bench/compare with a trainer and peers that say what they are told.
. "$(dirname "$0")/harness.sh"

command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 0; }
mkdir checkout/bench peers
cp "$source_dir"/bench/{compare,machine.py} checkout/bench/
touch peers/{tf_net.py,torch_net.py}

fake towers 'precision=fp32
for flag; do case $flag in --precision=*) precision=${flag#*=} ;; esac; done
echo "{\"version\": \"1\", \"backend\": \"CPU\", \"precision\": \"$precision\", \"examples_per_sec\": 4000}"'
fake tensorflow_python 'echo "{\"version\": \"2\", \"examples_per_sec\": 1000}"'
# The first trial of all variants finds another fastest than the second.
fake pytorch_python 'case "$*" in
  *--variant*) echo "{\"version\": \"3\", \"variant\": \"${*: -1}\", \"examples_per_sec\": 2000}" ;;
  *) if [ -e tried ]; then compiled=12; else compiled=8; fi; touch tried
     echo "{\"all\": {\"eager\": 10, \"compile\": $compiled, \"eager_bf16\": 99}}" ;;
esac'
compare=(checkout/bench/compare --towers bin/towers --peers peers --rounds 1 --seconds 1
         --tensorflow bin/tensorflow_python --pytorch bin/pytorch_python)
has_row() { grep -qE -- "$1" out || fail "no row: $1"; }

the_table_has_rates_and_ratios() {
  run 0 "${compare[@]}"
  has_row '^towers 1 \(CPU\) +fp32 +4000 +4000 \.\. 4000$'
  has_row '^tensorflow 2 +fp32 +1000 .* 4\.00 +4\.00 \.\. 4\.00$'
  has_row '^pytorch 3 compile +fp32 +2000 .* 2\.00 +2\.00 \.\. 2\.00$'
}

each_program_has_its_precision() {
  run 0 "${compare[@]}" --flag=--precision=bf16
  has_row '^towers 1 \(CPU\) +bf16 +4000 '
  has_row '^tensorflow 2 +fp32 '
  run 0 "${compare[@]}" --variant eager_bf16
  has_row '^pytorch 3 eager_bf16 +bf16 '
  ! grep -q 'fp32 steps' out || fail 'all steps are called fp32'
}

the_fastest_variant_is_the_best_of_two_trials() {
  run 0 "${compare[@]}"
  [ "$(grep -c '^pytorch_python' calls)" = 3 ] || fail 'not tried twice'
  grep -q '^pytorch_python.*--variant|compile|' calls || fail 'not the fastest'
}

without_the_peers_programs_nothing_is_installed() {
  run 1 checkout/bench/compare --towers bin/towers --peers nowhere --install
  said 'they do not come with a clone; give --peers=FOLDER'
  mkdir empty
  run 0 checkout/bench/compare --towers bin/towers --peers empty --install --rounds 1
  said 'pytorch is left out: there is no empty/torch_net.py'
  [ ! -e checkout/build ] || fail 'something was installed'
  run 0 checkout/bench/compare --help
  grep -q 'does not come with a clone: without it nothing is installed' out || fail 'help does not say so'
}

"$1"
