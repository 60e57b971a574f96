#!/usr/bin/env bash
# Measures the simulator through its command line: requests and page programs per CPU second, memory
# per page, preconditioning, traces. Prints a Markdown table with the goals of ssd.md section 4 next to
# the results. It takes some minutes; the devices of 4 and 64 TiB need 3 GB of free memory and are skipped without.
#
#   scripts/bench.sh [--rounds N] [--quick]     5 rounds, everything, unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
for program in cargo python3; do
  command -v "$program" >/dev/null || { echo "bench: $program is missing" >&2; exit 2; }
done
cargo build --quiet --release --locked -p onefold
exec python3 scripts/bench.py "${CARGO_TARGET_DIR:-target}/release/onefold" "$@"
