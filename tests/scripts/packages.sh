#!/usr/bin/env bash
# How scripts/build deals with system packages, on a machine made of fakes.
. "$(dirname "$0")/harness.sh"

# machine UID PACKAGE...: whose dpkg knows these packages; cmake and apt-get only note their calls.
machine() {
  local uid=$1
  shift
  fake id "echo $uid"
  rm -f bin/dpkg-query
  printf '#!/bin/bash\ncat <<END\n%s\nEND\nexit 1\n' "$(printf 'installed %s\n' "$@")" >bin/dpkg-query
  chmod +x bin/dpkg-query
  fake apt-get ''
  fake cmake ''
  fake sudo 'exit 1'
}
listed() { awk -v group="$1" '$1 == group { print $2 }' "$checkout/scripts/packages.txt"; }
build=$checkout/scripts/build
quietly() { run "$@" </dev/null; }

nothing_lacks() {
  machine 1000 $(listed build)
  quietly 0 "$build"
  ! grep -q apt-get calls || fail 'called apt-get'
}

root_installs_what_lacks() {
  machine 0 $(listed build | grep -vx -e g++ -e libarchive-dev)
  quietly 0 "$build"
  said 'Installing system packages: g++ libarchive-dev'
  grep -qx 'apt-get|.*|install|-y|--no-install-recommends|g++|libarchive-dev|' calls || fail 'other packages'
}

tests_need_more() {
  machine 0 $(listed build)
  quietly 0 "$build" --tests
  said "Installing system packages: $(echo $(listed test))"
}

no_install_lists_and_ends() {
  machine 0 $(listed build | grep -vx g++)
  quietly 1 "$build" --no-install
  said 'These system packages are missing: g++'
  ! grep -qE 'apt-get|cmake' calls || fail 'went on'
}

no_way_to_root_lists_and_ends() {
  machine 1000 $(listed build | grep -vx g++)
  quietly 1 "$build"
  said 'no way to root here: g++'
  ! grep -qE 'apt-get|cmake' calls || fail 'went on'
}

sudo_where_it_works() {
  machine 1000 $(listed build | grep -vx g++)
  fake sudo 'while [[ $1 == -* ]]; do shift; done; exec "$@"'
  quietly 0 "$build"
  said 'Installing system packages with sudo: g++'
  grep -q '^sudo|env|DEBIAN_FRONTEND=noninteractive|apt-get|.*|install|' calls || fail 'no sudo'
}

failed_install_ends() {
  machine 0 $(listed build | grep -vx g++)
  fake apt-get 'case "$*" in *install*) exit 100 ;; esac'
  quietly 1 "$build"
  said 'apt-get could not install them'
  ! grep -q cmake calls || fail 'went on'
}

what_may_lack_is_installed_by_root() {
  machine 0 $(listed build)
  quietly 0 "$build"
  said "Installing system packages: $(echo $(listed option))"
  grep -q '^cmake' calls || fail 'did not build'
}

what_may_lack_stops_nothing() {
  machine 0 $(listed build)
  fake apt-get 'case "$*" in *install*) exit 100 ;; esac'
  quietly 0 "$build"
  said "Going on without $(echo $(listed option))"
  machine 1000 $(listed build)
  quietly 0 "$build" --no-install
  said "Going on without $(echo $(listed option))"
  grep -q '^cmake' calls || fail 'did not build'
}

other_systems_go_on() {
  machine 1000
  mkdir tools
  for tool in bash dirname awk sed tr cat rm env; do ln -s "$(command -v $tool)" tools/; done
  rm bin/dpkg-query bin/apt-get
  quietly 0 env PATH="$work/bin:$work/tools" bash "$build"
  said 'Not Debian or Ubuntu'
}

unknown_option() {
  machine 0
  quietly 2 "$build" --tsts
  said "unknown option '--tsts'"
  calls ''
}

"$1"
