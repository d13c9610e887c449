# Sourced by the tests of scripts/. "bash FILE CASE" runs one case in a folder of its own with a
# space in its name, where programs that a case fakes come first on the PATH.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/towers scripts XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/checkout/scripts"
cp "$source_dir"/scripts/* "$work/checkout/scripts/"
checkout=$work/checkout
PATH=$work/bin:$PATH
cd "$work"

fail() { printf 'FAILED: %s\n' "$*"; tail -n 50 "$work"/{calls,out,err} 2>/dev/null; exit 1; }

# fake NAME BODY: a program that notes its call in the file "calls", then does BODY.
fake() {
  printf '#!/bin/bash\nprintf "%%s|" %q "$@" >>%q; echo >>%q\n%s\n' \
    "$1" "$work/calls" "$work/calls" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# run EXIT_CODE COMMAND...: stdout and stderr go to the files "out" and "err".
run() {
  local want=$1 code=0
  shift
  : >calls
  "$@" >out 2>err || code=$?
  [ "$code" = "$want" ] || fail "exit code $code instead of $want: $*"
}

calls() { [ "$(cat calls)" = "$1" ] || fail "calls are not: $1"; }
said() { grep -qF -- "$1" err || fail "stderr lacks: $1"; }
