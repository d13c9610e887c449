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

# The libraries that the archive brings, each one's licence beside them.
copies_come_with_their_licences() {
  command -v dpkg-query >/dev/null || { echo 'skipped: no dpkg-query'; return 0; }
  cmake --install "$TOWERS_BUILD" --prefix "$work/a prefix" --component bundle >out 2>err || fail 'cmake --install'
  [ ! -s err ] || fail "said: $(cat err)"
  cd 'a prefix'
  local library owner
  for library in lib/towers/lib{stdc++,curl,protobuf}.so.*; do
    owner=$(dpkg-query -S "*/${library##*/}" | sed 's/[:,].*//; /^lib32/d; /^libx32/d' | head -n 1)
    [ -s "share/doc/towers/licences/$owner" ] || fail "no licence for $library, of $owner"
  done
  [ -s share/doc/towers/licences/nlohmann-json3-dev ] || fail 'no licence of a library of headers'
  [ -s share/doc/towers/licences/common-licenses/LGPL-3 ] || fail 'no text of a licence that is referred to'
}

"$1"
