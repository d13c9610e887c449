#!/usr/bin/env bash
# tests/include_arrows itself: each wrong arrow is found, each right one is not.
. "$(dirname "$0")/harness.sh"

tree() { mkdir -p tree/{app,cli,core,data,cpu,cuda,cluster}; }
include() { printf '#include %s\n' "$2" >"tree/$1/x.$([ -z "${3:-}" ] && echo cpp || echo "$3")"; }
arrows=$source_dir/tests/include_arrows

right_arrows() {
  tree
  for line in 'app "cli/a.h"' 'app "cpu/a.h"' 'app <spdlog/spdlog.h>' 'cli "core/a.h"' 'data "data/a.h"' \
              'data <openssl/evp.h>' 'app "cuda/loader.h"' 'app "cuda/surroundings.h"' \
              'cuda "core/a.h"' 'cuda "cuda/a.h"' 'cuda <cuda_runtime.h>' 'cpu "hwy/highway.h"' 'core "core/a.h"' 'core <vector>' \
              'app "cluster/a.h"' 'cluster <grpcpp/grpcpp.h>' 'cluster "core/a.h"'; do
    include $line
    run 0 "$arrows" tree
  done
  include cuda '<cudnn_frontend.h>' cu
  run 0 "$arrows" tree
}

wrong_arrows() {
  for line in 'core "data/a.h"' 'core <spdlog/spdlog.h>' 'core <zlib.h>' 'core "hwy/highway.h"' 'cli "data/a.h"' \
              'cli "app/a.h"' 'data "cli/a.h"' 'data "cpu/a.h"' 'cpu "data/a.h"' 'cpu "app/a.h"' 'app "tests/a.h"' \
              'app "cuda/backend.h"' 'cpu "cuda/loader.h"' 'data "cuda/loader.h"' 'cuda "cpu/a.h"' 'cuda "data/a.h"' \
              'app <cuda_runtime.h>' 'cpu <cublasLt.h>' 'data <nccl.h>' \
              'app <mpi.h>' 'cluster <mpi.h>' 'cluster "data/a.h"' 'cluster "cli/a.h"' 'data "cluster/a.h"' 'cpu "cluster/a.h"' 'cluster "cuda/loader.h"'; do
    rm -rf tree
    tree
    include $line
    run 1 "$arrows" tree
    include $line h
    rm tree/*/x.cpp
    run 1 "$arrows" tree
  done
  rm -rf tree
  tree
  echo '#include <cuda_runtime.h>' >tree/cuda/loader.cpp  # compiled where there is no CUDA
  run 1 "$arrows" tree
}

"$1"
