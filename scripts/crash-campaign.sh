#!/usr/bin/env bash
# Kills a served device with SIGKILL under load, again and again, and verifies after every restart
# that what was acknowledged as durable is there. `short` is part of `make test`.
#
#   scripts/crash-campaign.sh [short|full] [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-full}" in
  short) kills=5 ;;
  full) kills=100 ;;
  *) sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
seed=${2:-$((RANDOM * 32768 + RANDOM))}

# Debian's module belongs to Debian's Python, which need not be the first in PATH.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import nbd' 2>/dev/null; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  echo "skipped: crash campaign (python3-libnbd is missing; make setup installs it)"
  exit 0
fi
cargo build --release --locked --package onefold
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
if ! "$python" scripts/crash_campaign.py --onefold target/release/onefold --folder "$folder" \
  --kills "$kills" --seed "$seed"; then
  echo "reproduce: scripts/crash-campaign.sh ${1:-full} $seed" >&2
  exit 1
fi
