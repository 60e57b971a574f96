#!/usr/bin/env bash
# Runs studies/orderings.toml, a short version of the experiments with append-only isolation, and fails
# unless every check in it comes out as it says. Two minutes of CPU time.
#
#   scripts/study-short.sh [THREADS]     one per core unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  '' | *[0-9]) ;;
  *) sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold
  onefold=${CARGO_TARGET_DIR:-target}/release/onefold
fi
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
"$onefold" study run studies/orderings.toml --quiet --results "$folder" ${1:+--threads "$1"} >/dev/null
"$onefold" study check studies/orderings.toml --results "$folder"
