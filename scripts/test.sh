#!/usr/bin/env bash
# Runs make targets one after another, names each with its time, and lists them at the end. The first failure ends the run.
#
#   scripts/test.sh STEP... [--background STEP... --foreground STEP...]
#
# Steps of the background wait for disks rather than for processors: they run while those of the foreground do, and what they say is
# shown when all of them are over. The time of processors is that of a step with all that it started and waited for.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

first=() background=() foreground=()
declare -n group=first
for argument; do
  case $argument in
    --background) declare -n group=background ;;
    --foreground) declare -n group=foreground ;;
    *) group+=("$argument") ;;
  esac
done

folder=$(mktemp --directory)
process=
finish() {
  # They put away what they have mounted.
  if [ -n "$process" ]; then kill -- "-$process" && wait "$process"; fi 2> /dev/null
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

summary=()
begin=$SECONDS
show_summary() {
  printf '\n== summary\n'
  printf '%s\n' "${summary[@]}"
}
# The steps of the background are over, or have to be now. Fails if one of them did.
end_background() {
  wait "$process"
  local result=$?
  process=
  printf '\n== in the background\n'
  cat "$folder/background"
  return $result
}
fail() {
  show_summary
  exit 1
}

TIMEFORMAT='%R %U %S'
run() {
  local step=$1 result=ok line
  printf '\n== %s\n' "$step"
  { time make --no-print-directory "$step" < /dev/null 2>&3; } 3>&2 2> "$folder/times" || result=FAILED
  line=$(awk -v step="$step" -v result=$result \
    '{ printf "%-20s %-6s  %4d s, %4d s of processors", step, result, $1, $2 + $3 }' "$folder/times")
  summary+=("$line")
  [ $result = ok ] || fail
  printf '== %s\n' "$line"
}

for step in "${first[@]}"; do run "$step"; done
if [ ${#background[@]} -gt 0 ]; then
  # A session of its own, so that it can be ended as a whole.
  setsid "$0" "${background[@]}" > "$folder/background" 2>&1 < /dev/null &
  process=$!
fi
for step in "${foreground[@]}"; do
  run "$step"
  if [ -n "$process" ] && ! kill -0 "$process" 2> /dev/null; then end_background || exit 1; fi
done
[ -z "$process" ] || end_background || exit 1
show_summary
printf '%-20s ok      %4d s\n' all $((SECONDS - begin))
