# Shared by the scripts in this folder; sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
[ -e /dev/fd/0 ] || exec </dev/null  # started with stdin closed: tools expect an open one

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# packages GROUP...: the names that packages.txt lists for these groups.
packages() {
  awk -v groups=" $* " '!/^#/ && index(groups, " " $1 " ") { print $2 }' "$root/scripts/packages.txt"
}

# missing NAME...: those that dpkg does not know as installed.
missing() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true
  printf '%s\n' "$@" | awk -v list="$installed" '
    BEGIN { n = split(list, lines, "\n"); for (i = 1; i <= n; ++i) have[lines[i]] = 1 }
    !(("installed " $1) in have)'
}

# How to become root: prints nothing for root itself, "sudo" where it works; fails where there is no way.
root_prefix() {
  [ "$(id -u)" -ne 0 ] || return 0
  command -v sudo >/dev/null || return 1
  # Without a terminal sudo cannot ask for a password.
  sudo -n true 2>/dev/null || [ -t 0 ] || return 1
  echo sudo
}

# need_packages INSTALL GROUP...: installs what these groups lack, or lists it and ends with exit code 1.
need_packages() {
  local install=$1 lacking prefix
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "Not Debian or Ubuntu: going on with what is installed (scripts/packages.txt says what is needed)."
    return
  fi
  lacking=$(missing $(packages "$@") | tr '\n' ' ')
  lacking=${lacking% }
  [ -n "$lacking" ] || return 0
  if [ "$install" = no ]; then
    die "These system packages are missing: $lacking
Install them with: apt-get install --no-install-recommends $lacking"
  fi
  prefix=$(root_prefix) || die "These system packages are missing, and there is no way to root here: $lacking
Ask an administrator for: apt-get install --no-install-recommends $lacking"
  say "Installing system packages${prefix:+ with $prefix}: $lacking"
  # shellcheck disable=SC2086  # a list of names
  install_packages "$prefix" $lacking || die "apt-get could not install them; see above. Then run this again."
}

# install_packages PREFIX NAME...
install_packages() {
  local apt=($1 env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  shift
  "${apt[@]}" update </dev/null >&2 || say "apt-get update failed; trying with the package lists there are."
  "${apt[@]}" install -y --no-install-recommends "$@" </dev/null >&2
}

# want_packages INSTALL GROUP...: as need_packages, but goes on without them where they cannot be installed.
want_packages() {
  local install=$1 lacking prefix
  shift
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  lacking=$(missing $(packages "$@") | tr '\n' ' ')
  lacking=${lacking% }
  [ -n "$lacking" ] || return 0
  if [ "$install" = yes ] && prefix=$(root_prefix); then
    say "Installing system packages${prefix:+ with $prefix}: $lacking"
    # shellcheck disable=SC2086  # a list of names
    install_packages "$prefix" $lacking && return 0
  fi
  say "Going on without $lacking (scripts/packages.txt says what for)."
}
