#!/usr/bin/env bash
# Compares the buffer policies with libCacheSim, a cache simulator by other people: the same Zipf
# trace (golden trace G1 of the buffer specification) through both, miss ratios side by side. Fails
# if they differ by more than each policy may. libCacheSim comes from PyPI into a throw-away virtual
# environment; if it cannot be installed, the comparison is skipped, loudly, and the exit code is 0.
#
#   scripts/oracle-libcachesim.sh
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
  *) echo "oracle: no arguments expected; see --help" >&2; exit 2 ;;
esac
for program in cargo python3; do
  command -v "$program" >/dev/null || { echo "oracle: $program is missing" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! reason=$(scripts/libcachesim-venv.sh "$work/venv"); then
  echo "skipped: comparison with libCacheSim ($reason)"
  exit 0
fi
cargo build --quiet --locked -p onefold-buffer --example oracle
"$work/venv/bin/python" scripts/libcachesim_oracle.py compare \
  "${CARGO_TARGET_DIR:-target}/debug/examples/oracle" "$work"
