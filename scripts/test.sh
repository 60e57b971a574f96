#!/usr/bin/env bash
# Runs make targets one after another, names each with its time, and lists them at the end. The
# first failure ends the run.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

summary=()
begin=$SECONDS
for step in "$@"; do
  printf '\n== %s\n' "$step"
  start=$SECONDS
  if make --no-print-directory "$step" </dev/null; then
    line=$(printf '%-20s ok      %4d s' "$step" $((SECONDS - start)))
  else
    line=$(printf '%-20s FAILED  %4d s' "$step" $((SECONDS - start)))
    summary+=("$line")
    printf '\n== summary\n'
    printf '%s\n' "${summary[@]}"
    exit 1
  fi
  summary+=("$line")
  printf '== %s\n' "$line"
done
printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
printf '%-20s ok      %4d s\n' all $((SECONDS - begin))
