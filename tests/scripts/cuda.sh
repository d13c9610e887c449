#!/usr/bin/env bash
# How scripts/build gets a CUDA toolkit, on a machine made of fakes.
. "$(dirname "$0")/harness.sh"

everything='a CUDA toolkit|cuda-toolkit[nvcc]==13.0.*
cuDNN 9|nvidia-cudnn-cu13>=9,<10
cudnn_frontend.h|nvidia-cudnn-frontend>=1,<2'
headers='cudnn_frontend.h|nvidia-cudnn-frontend>=1,<2'

# machine LACKS [PIP_BODY]: that lacks this, with a pip that does as the body says.
machine() {
  fake id 'echo 1000'
  rm -f bin/dpkg-query
  printf '#!/bin/bash\ncat <<END\n%s\nEND\n' \
    "$(awk '$1 == "build" || $1 == "option" || $1 == "cuda" { print "installed " $2 }' "$checkout/scripts/packages.txt")" >bin/dpkg-query
  chmod +x bin/dpkg-query
  fake apt-get ''
  printf '%s\n' "$1" >lacks
  fake cmake "case \"\$*\" in *CudaSearch*) [ ! -s '$work/lacks' ] || cat '$work/lacks' ;; esac"
  fake pip "${2:-: >'$work/lacks'}"
  fake python3 "case \"\$*\" in *venv' '*) mkdir -p \"\$3/bin\"; cp '$work/bin/pip' \"\$3/bin/pip\" ;; esac"
  fake nvidia-smi 'exit 9'
}
gpu() { fake nvidia-smi "[ \"\$*\" = -L ] && echo 'GPU 0: NVIDIA H200' || echo '| Driver Version: 1.2  CUDA Version: $1  |'"; }
build=$checkout/scripts/build
pip_calls() { grep '^pip|' calls || true; }
wants() { pip_calls | grep -qF -- "$1" || fail "pip was not asked for $1"; }
no_pip() { [ -z "$(pip_calls)" ] || fail 'pip was called'; }

nothing_lacks() {
  machine ''
  gpu 13.0
  run 0 "$build"
  no_pip
}

without_a_gpu_nothing_is_installed() {
  if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo 'skipped: there is a GPU'; exit 0; fi
  machine "$everything"
  run 0 "$build"
  no_pip
}

with_a_gpu_all_is_installed() {
  machine "$everything"
  gpu 13.2
  run 0 "$build"
  said 'Installing from PyPI into build/cuda (about 2.3 GB): a CUDA toolkit, cuDNN 9, cudnn_frontend.h'
  wants '|cuda-toolkit[nvcc]==13.0.*|nvidia-cudnn-cu13>=9,<10|'
  wants '|--no-deps|nvidia-cudnn-frontend>=1,<2|'
  [ "$(pip_calls | grep -c -- --no-deps)" = 1 ] || fail 'the toolkit came without what it needs'
}

asked_for_without_a_gpu() {
  machine "$everything"
  run 0 "$build" --cuda
  wants 'cuda-toolkit'
  grep -q '^cmake|--preset|release|.*-DTOWERS_CUDA=ON|' calls || fail 'not configured to need the module'
}

a_toolkit_without_headers_gets_them_alone() {
  machine "$headers"
  run 0 "$build"
  said 'a few MB'
  [ "$(pip_calls | wc -l)" = 1 ] || fail 'more than one call of pip'
  wants '|--no-deps|nvidia-cudnn-frontend>=1,<2|'
}

libraries_for_a_toolkit_that_is_there_come_alone() {
  machine 'cuDNN 9|nvidia-cudnn-cu12>=9,<10'
  gpu 12.4
  run 0 "$build"
  wants '|--no-deps|nvidia-cudnn-cu12>=9,<10|'
}

an_old_driver_is_told() {
  machine "$everything"
  gpu 12.4
  run 0 "$build"
  said 'The NVIDIA driver takes CUDA up to 12.4'
  no_pip
  run 1 "$build" --cuda
  no_pip
}

no_install_is_respected() {
  machine "$everything"
  gpu 13.0
  run 0 "$build" --no-install
  said 'Missing: a CUDA toolkit, cuDNN 9, cudnn_frontend.h'
  no_pip
  run 1 "$build" --no-install --cuda
  no_pip
}

a_failed_install_goes_on_or_ends() {
  machine "$everything" 'exit 1'
  gpu 13.0
  run 0 "$build"
  said "PyPI's packages could not be installed"
  grep -q '^cmake|--build|' calls || fail 'did not build'
  run 1 "$build" --cuda
  ! grep -q '^cmake|--build|' calls || fail 'went on'
}

no_cuda() {
  machine "$everything"
  gpu 13.0
  run 0 "$build" --no-cuda
  no_pip
  grep -q '^cmake|--preset|release|.*-DTOWERS_CUDA=OFF|' calls || fail 'not switched off'
}

not_with_sanitizers() {
  machine "$everything"
  gpu 13.0
  run 0 "$build" --preset asan
  no_pip
  run 1 "$build" --preset asan --cuda
}

"$1"
