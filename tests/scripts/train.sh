#!/usr/bin/env bash
# scripts/train around a trainer that only notes how it was called.
. "$(dirname "$0")/harness.sh"

# trainer ANSWERS: shell code that answers "train", "train --nodownload" and "download".
trainer() {
  fake towers "$1"
  fake build ''
  mkdir -p "$checkout/build/release"
  mv bin/towers "$checkout/build/release/towers"
  mv bin/build "$checkout/scripts/build"
  sed -i "s|^data_dir=[^ ]*|data_dir='$work/data'|" "$checkout/scripts/train"
}
healthy='case "$*" in *--nodownload) exit 1 ;; esac'
unreachable='case "$*" in *--nodownload|download) exit 1 ;; esac'

downloads_then_trains() {
  trainer "$healthy"
  run 0 "$checkout/scripts/train" --num_gpus=2 --train_dir 'a b'
  calls 'build|
towers|train|--num_gpus=2|--train_dir|a b|--nodownload|
towers|download|
towers|train|--num_gpus=2|--train_dir|a b|'
}

falls_back_to_synthetic_and_says_so() {
  trainer "$unreachable"
  run 0 "$checkout/scripts/train" --max_steps=5
  calls 'build|
towers|train|--max_steps=5|--nodownload|
towers|download|
towers|train|--max_steps=5|--dataset=synthetic|'
  said 'trains on --dataset=synthetic'
}

data_flags_hold() {
  trainer 'exit 1'
  for flag in --dataset=cifar10 --data_dir=/x -data_dir=/x --data_url=http://127.0.0.1/x \
              --nodownload --download=false --flagfile=f --resume -resume=true --job_name=ps; do
    run 1 "$checkout/scripts/train" $flag
    calls "build|
towers|train|$flag|"
  done
  run 1 "$checkout/scripts/train" --data_dir /x
  calls 'build|
towers|train|--data_dir|/x|'
}

data_at_the_usual_place_is_left_to_the_trainer() {
  trainer 'exit 1'
  mkdir -p data/cifar-10-batches-bin
  touch data/cifar-10-batches-bin/data_batch_1.bin
  run 1 "$checkout/scripts/train"
  calls 'build|
towers|train|'
}

unwritable_place_is_left_to_the_trainer() {
  trainer 'exit 1'
  echo 'a file, so no folder can be made' >data
  run 1 "$checkout/scripts/train"
  calls 'build|
towers|train|--nodownload|
towers|train|'
}

wrong_flags_download_nothing() {
  trainer 'exit 2'
  run 2 "$checkout/scripts/train" --num_gpu=2
  calls 'build|
towers|train|--num_gpu=2|--nodownload|
towers|train|--num_gpu=2|'
  [ ! -e data ] || fail 'made a data folder'
}

help_downloads_nothing() {
  trainer 'echo help'
  run 0 "$checkout/scripts/train" --help
  [ "$(cat out)" = help ] || fail 'no help'
  ! grep -qF 'towers|download|' calls || fail 'downloaded'
}

interrupted_download_ends() {
  trainer 'case "$*" in *--nodownload) exit 1 ;; download) exit 130 ;; esac'
  run 130 "$checkout/scripts/train"
  [ "$(tail -n 1 calls)" = 'towers|download|' ] || fail 'went on after the interrupt'
}

no_install_is_for_the_build() {
  trainer "$healthy"
  run 0 "$checkout/scripts/train" --no-install --batch_size=8
  calls 'build|--no-install|
towers|train|--batch_size=8|--nodownload|
towers|download|
towers|train|--batch_size=8|'
}

failed_build_ends() {
  trainer "$healthy"
  echo 'exit 1' >>"$checkout/scripts/build"
  run 1 "$checkout/scripts/train"
  calls 'build|'
}

stdin_closed() {
  trainer '[ -e /dev/fd/0 ] || exit 3; case "$*" in *--nodownload) exit 1 ;; esac'
  run 0 "$checkout/scripts/train" <&-
}

"$1"
