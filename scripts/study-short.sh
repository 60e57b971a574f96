#!/usr/bin/env bash
# Runs studies/orderings.toml, a short version of the experiments with append-only isolation,
# studies/wu2022-small.toml, one of those with deduplication, studies/volume-small.toml, one of a log on a
# log, and studies/choi2022-small.toml, one of journals on zones, and fails unless every check in them comes
# out as they say. Three minutes of CPU time.
#
#   scripts/study-short.sh [THREADS]     one per core unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  '' | *[0-9]) ;;
  *) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold
  onefold=${CARGO_TARGET_DIR:-target}/release/onefold
fi
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
for study in orderings wu2022-small volume-small choi2022-small; do
  "$onefold" study run "studies/$study.toml" --quiet --results "$folder/$study" ${1:+--threads "$1"} >/dev/null
  "$onefold" study check "studies/$study.toml" --results "$folder/$study"
done
