#!/usr/bin/env bash
# What `cmake --install` puts where. TOWERS_BUILD is the build folder.
. "$(dirname "$0")/harness.sh"

by_convention_and_movable() {
  cmake --install "$TOWERS_BUILD" --prefix "$work/a prefix" >out 2>err || fail 'cmake --install'
  cd 'a prefix'
  for file in bin/towers share/man/man1/towers.1 share/bash-completion/completions/towers \
    share/zsh/vendor-completions/_towers share/fish/vendor_completions.d/towers.fish \
    share/doc/towers/{README.md,copyright,THIRD_PARTY.md,docs/troubleshooting.md} \
    share/doc/towers/examples/towers-ps@.service; do
    [ -f "$file" ] || fail "$file is not there"
  done
  # Modules, where they are built, and nothing else: the libraries are the system's.
  local others
  others=$(find lib -type f ! -name 'libtowers_*.so' 2>/dev/null) || true
  [ -z "$others" ] || fail "installed too: $others"

  mv "$work/a prefix" "$work/moved"
  cd "$work"
  moved/bin/towers --version >version || fail 'does not run where it was moved'
  if [ -f "$TOWERS_BUILD/libtowers_cuda.so" ]; then
    [ -f moved/lib/towers/libtowers_cuda.so ] || fail 'the GPU module is not where it is looked for'
    ! grep -q 'the GPU module is not there' version || fail 'the GPU module is not found'
  else
    grep -qF "$work/moved/lib/towers/libtowers_cuda.so" version || fail 'does not look in lib/towers'
  fi
}

"$1"
