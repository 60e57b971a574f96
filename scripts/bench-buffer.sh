#!/usr/bin/env bash
# Measures the buffer policies: CPU time per request on golden trace G1L of the buffer specification
# (20 million single-page reads) and per page of a block mix; beside it that of libCacheSim on G1L,
# if it can be installed. Needs 0.6 GB of free space for temporary files; takes about five minutes.
#
#   scripts/bench-buffer.sh [POLICY ..]     all policies unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
for program in cargo python3; do
  command -v "$program" >/dev/null || { echo "bench: $program is missing" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --quiet --release --locked -p onefold-buffer --example speed --example oracle
examples=${CARGO_TARGET_DIR:-target}/release/examples
"$examples/speed" "$@" | tee "$work/ours"
if reason=$(scripts/libcachesim-venv.sh "$work/venv"); then
  "$work/venv/bin/python" scripts/libcachesim_oracle.py speed "$examples/oracle" "$work"
else
  echo "skipped: speed of libCacheSim ($reason)"
fi
