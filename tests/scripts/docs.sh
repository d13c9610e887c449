#!/usr/bin/env bash
# README.md and docs/ say what is true: messages, flags, links. TOWERS_BUILD is the build folder.
. "$(dirname "$0")/harness.sh"

pages() { find "$source_dir"/README.md "$source_dir"/CONTRIBUTING.md "$source_dir"/docs -name '*.md'; }

# Each message of a table in docs/troubleshooting.md, between the dots that stand for what differs, is in the sources.
messages_are_the_programs() {
  local parts=0 part
  # Adjacent string literals are one; so is what a line break separates.
  { cat "$source_dir"/{app,cli,cluster,core,cpu,cuda,data}/*.{cpp,h,cu} 2>/dev/null || true; cat "$source_dir"/scripts/*; } |
    tr '\n' ' ' | sed -E 's/" *(\+ *)?"//g; s/\\"/"/g' >sources
  awk -F ' \\| ' '/^\| `/ { print $1 }' "$source_dir/docs/troubleshooting.md" | grep -oE '`[^`]+`' | tr -d '`' |
    sed 's/…/\n/g' | sed -E 's/^[ :;,()]+//; s/[ :;,()?]+$//' | awk 'length > 4' | sort -u >parts
  while IFS= read -r part; do
    grep -qF -- "$part" sources || fail "no message has: $part"
    parts=$((parts + 1))
  done <parts
  [ $parts -gt 60 ] || fail "only $parts parts of messages were found"
}

# Flags of other programs that the pages name.
others='no-install cuda no-cuda preset tests pack dry-run help version install rounds seconds peers x prefix logdir rm gpus
time signal label cpus-per-task dependency mpi kill-on-bad-exit ntasks-per-node gpus-per-task bind-to map-by mca allow-run-as-root
oversubscribe nodes multi-prog only bool nobool flag noflag name'

flags_are_the_programs() {
  local name count=0
  "$TOWERS_BUILD/towers" help man | sed 's/\\-/-/g' | grep -oE '^\\fB--(\[no\])?[a-z0-9_]+' | sed -E 's/.*--(\[no\])?//' |
    sort -u >flags
  [ "$(wc -l <flags)" -gt 60 ] || fail 'the manual page has no flags'
  for name in $(pages | xargs -d '\n' cat | grep -oE -- '(^|[ `(])--[a-zA-Z0-9][a-zA-Z0-9_-]*' | sed 's/.*--//' | sort -u); do
    count=$((count + 1))
    grep -qxF -e "$name" -e "${name#no}" flags || [[ " ${others//$'\n'/ } " == *" $name "* ]] || fail "no program has --$name"
  done
  [ $count -gt 60 ] || fail "only $count flags were found in the pages"
}

# Each command of the pages but for those with dots is parsed to its end, where a flag stands that is not there.
commands_are_taken() {
  local command count=0
  # In line, and the last one of a line of a block, behind mpirun or srun; comments off.
  { pages | xargs -d '\n' grep -ohE '`towers [^`]+`' | tr -d '`'
    pages | xargs -d '\n' awk '/^```/ { block = !block; next } block' | sed -E 's/ +#.*//; s/ *\\$//' |
      grep -oE '(^|[ /])towers (-|[a-z])[^|]*$' | sed -E 's/^[ /]*//'; } |
    grep -vE '\.\.\.|…|COMMAND|[$;]|towers (help|on) |--version|--help|--flagfile' | sort -u >commands
  while IFS= read -r command; do
    run 2 bash -c "'$TOWERS_BUILD'/$command --no_such_thing" </dev/null
    said 'unknown flag --no_such_thing'
    count=$((count + 1))
  done <commands
  [ $count -gt 30 ] || fail "only $count commands were found"
}

# Headings as links name them.
anchors() { sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'; }

links_lead_somewhere() {
  local page link file anchor count=0
  while IFS= read -r page; do
    while IFS= read -r link; do
      case $link in http://*|https://*) continue ;; esac
      count=$((count + 1))
      file=${link%%#*} anchor=
      [ "$link" = "$file" ] || anchor=${link#*#}
      file=${file:+$(dirname "$page")/$file}
      [ -e "${file:-$page}" ] || fail "$page: no file $link"
      [ -z "$anchor" ] || anchors "${file:-$page}" | grep -qxF -- "$anchor" || fail "$page: no heading $link"
    done < <(grep -oE '\]\([^)]+\)' "$page" | sed -E 's/^\]\(//; s/\)$//')
  done < <(pages)
  [ $count -gt 20 ] || fail "only $count links were found"
}

files_are_there() {
  local file count=0
  while IFS= read -r file; do
    compgen -G "$source_dir/$file" >/dev/null || fail "no file $file"
    count=$((count + 1))
  done < <(pages | xargs -d '\n' cat |
    grep -oE '`(app|cli|cluster|core|cpu|cuda|data|tests|scripts|packaging|docs|bench|cmake|\.ci)/[^` ]*' | tr -d '`' | sort -u)
  [ $count -gt 40 ] || fail "only $count files were found in the pages"
}

# Names between backquotes in the first cells of a page's tables, one a line.
first_cells() { awk -F ' \\| ' '/^\| `/ { print $1 }' "$source_dir/docs/formats/$1" | grep -oE '`[a-z_0-9]+`' | tr -d '`'; }

columns_are_the_programs() {
  local towers=$TOWERS_BUILD/towers
  "$towers" train --device=cpu --dataset=synthetic --batch_size=4 --max_steps=1 --train_dir=run --metrics_log=log.csv >out 2>&1 ||
    fail "$(cat out)"
  "$towers" bench --device=cpu --batch_size=1 --warmup=0 --repeats=1 --csv=sweep.csv >out 2>&1 || fail "$(cat out)"
  [ "$(first_cells metrics_log.md | paste -sd,)" = "$(head -n 1 log.csv)" ] || fail "log.csv has: $(head -n 1 log.csv)"
  [ "$(first_cells sweep.md | paste -sd,)" = "$(head -n 1 sweep.csv)" ] || fail "sweep.csv has: $(head -n 1 sweep.csv)"
}

# Keys of --json are in the page's rows of their commands; --json is JSON as the tests of each command parse it.
json_keys_are_the_programs() {
  local towers=$TOWERS_BUILD/towers key count=0
  "$towers" train --device=cpu --dataset=synthetic --batch_size=4 --max_steps=1 --train_dir=run >out 2>&1 || fail "$(cat out)"
  printf 'P3 1 1 255 9 9 9\n' >picture.ppm
  {
    "$towers" devices --json
    "$towers" predict --device=cpu picture.ppm gone.ppm --checkpoint_dir=run --json || true
    "$towers" inspect run --json
    "$towers" inspect --diff run run --json
    "$towers" inspect run/events.out.* --json
  } >json 2>err
  for key in $(grep -oE '"[a-z_]+": ?' json | tr -d '": ' | sort -u); do
    grep -qF -- "\`$key\`" "$source_dir/docs/formats/listings.md" || fail "listings.md does not have: $key"
    count=$((count + 1))
  done
  [ $count -gt 30 ] || fail "only $count keys were found"
}

"$1"
