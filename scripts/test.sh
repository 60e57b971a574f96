#!/usr/bin/env bash
# Runs make targets one after another, names each with its time, and lists them at the end. The first failure ends the run.
#
#   scripts/test.sh STEP... [--beside STEP...]
#
# Steps behind --beside wait for disks rather than for processors: they run while the others do, and what they say is shown when all
# of them are over. The time of processors is that of a step with all that it started and waited for.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

steps=() others=()
while [ $# -gt 0 ] && [ "$1" != --beside ]; do steps+=("$1") && shift; done
[ $# = 0 ] || others=("${@:2}")

folder=$(mktemp --directory)
beside=
finish() {
  # They put away what they have mounted.
  if [ -n "$beside" ]; then kill -- "-$beside" && wait "$beside"; fi 2> /dev/null
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
# The steps beside the others are over, or have to be now. Fails if one of them did.
end_beside() {
  wait "$beside"
  local result=$?
  beside=
  printf '\n== beside these\n'
  cat "$folder/beside"
  return $result
}

if [ ${#others[@]} -gt 0 ]; then
  # A session of its own, so that it can be ended as a whole.
  setsid "$0" "${others[@]}" > "$folder/beside" 2>&1 < /dev/null &
  beside=$!
fi
TIMEFORMAT='%R %U %S'
for step in "${steps[@]}"; do
  printf '\n== %s\n' "$step"
  result=ok
  { time make --no-print-directory "$step" < /dev/null 2>&3; } 3>&2 2> "$folder/times" || result=FAILED
  line=$(awk -v step="$step" -v result=$result \
    '{ printf "%-20s %-6s  %4d s, %4d s of processors", step, result, $1, $2 + $3 }' "$folder/times")
  summary+=("$line")
  if [ $result = FAILED ]; then
    show_summary
    exit 1
  fi
  printf '== %s\n' "$line"
  if [ -n "$beside" ] && ! kill -0 "$beside" 2> /dev/null; then end_beside || exit 1; fi
done
[ -z "$beside" ] || end_beside || exit 1
show_summary
printf '%-20s ok      %4d s\n' all $((SECONDS - begin))
