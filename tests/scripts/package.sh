#!/usr/bin/env bash
# What CPack makes of a build, as scripts/package has it do. TOWERS_BUILD is the build folder.
. "$(dirname "$0")/harness.sh"

pack() {
  cpack --config "$TOWERS_BUILD/CPackConfig.cmake" -G "$1" -B "$work/packages" >out 2>err || fail "cpack -G $1"
}

archive_runs_where_it_is_unpacked() {
  pack TGZ
  mkdir 'some where'
  tar xf packages/towers-*-linux-*.tar.gz -C 'some where' || fail 'no archive, or not a whole one'
  local tree=("$work/some where"/towers-*) foreign
  [ ${#tree[@]} = 1 ] || fail "it has several folders: ${tree[*]}"
  "${tree[0]}/bin/towers" train --device=cpu --dataset=synthetic --batch_size=4 --max_steps=1 --train_dir=run \
    >out 2>err || fail 'it does not train'
  # Of the system it takes glibc alone.
  foreign=$(ldd "${tree[0]}/bin/towers" |
    awk -v own="${tree[0]}" '/=>/ && index($0, own) == 0 && !/lib(c|m|dl|rt|pthread|resolv)\.so/') || true
  [ -z "$foreign" ] || fail "it takes the system's: $foreign"

  # Each library that it brings has its licence beside it.
  command -v dpkg-query >/dev/null || return 0
  cd "${tree[0]}"
  local library owner
  for library in lib/towers/lib{stdc++,curl,protobuf}.so.*; do
    owner=$(dpkg-query -S "*/${library##*/}" | sed 's/[:,].*//; /^lib32/d; /^libx32/d' | head -n 1)
    [ -s "share/doc/towers/licences/$owner" ] || fail "no licence for $library, of $owner"
  done
  [ -s share/doc/towers/licences/nlohmann-json3-dev ] || fail 'no licence of a library of headers'
  [ -s share/doc/towers/licences/common-licenses/LGPL-3 ] || fail 'no text of a licence that is referred to'
}

debian_packages_hold_what_they_are_for() {
  command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null || { echo 'skipped: no dpkg-dev, or no file'; return 0; }
  pack DEB
  local main module other
  main=$(ls packages/towers_*.deb) || fail 'no package of the program'
  dpkg-deb --contents "$main" >contents
  for file in bin/towers share/man/man1/towers.1 share/doc/towers/copyright; do
    grep -qE " \./usr/$file(\.gz)?$" contents || fail "$main lacks /usr/$file"
  done
  ! grep -q 'libtowers_' contents || fail "$main has a module, which is a package of its own"
  dpkg-deb --field "$main" Depends | grep -q 'libc6 (>=' || fail "$main does not say what it depends on"
  for module in cuda mpi; do
    other=packages/towers-${module}_${main#packages/towers_}
    if [ -f "$TOWERS_BUILD/libtowers_$module.so" ]; then
      dpkg-deb --contents "$other" | grep -q " \./usr/lib/towers/libtowers_$module.so$" || fail "$other lacks its module"
      dpkg-deb --field "$other" Depends | grep -q 'towers (= ' || fail "$other does not depend on the program"
    else
      [ ! -e "$other" ] || fail "$other is there without its module"
    fi
  done
}

service_is_one_that_systemd_takes() {
  command -v systemd-analyze >/dev/null || { echo 'skipped: no systemd'; return 0; }
  sed "s|/usr/bin/towers|$TOWERS_BUILD/towers|" "$source_dir/packaging/examples/towers-ps@.service" >towers-ps@.service
  systemd-analyze verify "$work/towers-ps@1.service" >out 2>err || fail 'systemd-analyze verify'
  ! grep -i 'towers-ps' err || fail 'systemd complains'
}

"$1"
