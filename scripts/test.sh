#!/usr/bin/env bash
# Runs make targets one after another, names each with its time, and lists them at the end. The first failure ends the run.
#
#   scripts/test.sh [--background STEP... --foreground] STEP...
#
# Steps after --background run one after another while those after --foreground do; a group begins at its place, and
# there may be several. They wait for disks, or give way to what needs processors. What they say is shown when all of
# the group are over. The time of processors is that of a step with all that it started and waited for.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

folder=$(mktemp --directory)
# By group of the background: its process, empty when it is over.
processes=()
finish() {
  local process
  for process in "${processes[@]}"; do
    # They put away what they have mounted.
    [ -z "$process" ] || { kill -- "-$process" && wait "$process"; } 2> /dev/null
  done
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
begin_background() {
  # A session of its own, so that it can be ended as a whole.
  setsid "$0" "$@" > "$folder/background${#processes[@]}" 2>&1 < /dev/null &
  processes+=($!)
}
# Shows the groups that are over, or all of them if asked to wait. Fails if one of them did.
end_background() {
  local group result process
  for group in "${!processes[@]}"; do
    process=${processes[group]}
    if [ -z "$process" ] || { [ "${1:-}" != wait ] && kill -0 "$process" 2> /dev/null; }; then continue; fi
    wait "$process"
    result=$?
    processes[group]=
    printf '\n== in the background\n'
    cat "$folder/background$group"
    [ $result = 0 ] || return 1
  done
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

group=() in_background=
for argument in "$@" --foreground; do
  case $argument in
    --background) in_background=yes ;;
    --foreground)
      [ ${#group[@]} = 0 ] || begin_background "${group[@]}"
      group=() in_background=
      ;;
    *)
      if [ -n "$in_background" ]; then
        group+=("$argument")
      else
        run "$argument"
        end_background || exit 1
      fi
      ;;
  esac
done
end_background wait || exit 1
show_summary
printf '%-20s ok      %4d s\n' all $((SECONDS - begin))
