#!/usr/bin/env bash
# Writes checked blocks to served devices whose backing fails for seconds and heals, again and again: a log volume at two rates of
# errors, one on the zones of an image, a dmz volume with such a cache device, and an SSD image with a DRAM buffer. Every request has to be answered, nothing may be lost or wrong, and after healing writes
# succeed without a restart. Needs nbdkit, nbdfuse and libnbd's Python module. `short` is part of `make test`.
#
#   scripts/flaky.sh [short|full|SECONDS] [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."

budget=${1:-full}
case $budget in
  short) seconds=8 ;;
  full) seconds=3600 ;;
  '' | *[!0-9]*) sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
  *) seconds=$1 ;;
esac
seed=${2:-$((RANDOM * 32768 + RANDOM))}

python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import nbd' 2>/dev/null; then python=$candidate; break; fi
done
for need in nbdkit nbdfuse fusermount3; do
  command -v "$need" >/dev/null || missing=$need
done
if [ -z "$python" ] || [ -n "${missing:-}" ] || [ ! -w /dev/fuse ]; then
  echo "skipped: flaky backings (nbdkit, nbdfuse, python3-libnbd and /dev/fuse are needed; make setup installs them)"
  exit 0
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold
  onefold=${CARGO_TARGET_DIR:-target}/release/onefold
fi
onefold=$(realpath "$onefold")
folder=$(mktemp --directory)
clean() {
  for mount in "$folder"/*/mount; do fusermount3 -u "$mount" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap clean EXIT

rig() {
  local name=$1 rate=$2
  shift 2
  mkdir "$folder/$name"
  echo "$name, $rate of all requests fail:"
  if ! "$python" scripts/flaky.py --onefold "$onefold" --folder "$folder/$name" --seconds "$seconds" \
    --seed "$seed" --rate "pread=$rate" --rate "pwrite=$rate" --rate "trim=$rate" --rate "zero=$rate" "$@"; then
    echo "reproduce: scripts/flaky.sh $budget $seed ($name)" >&2
    exit 1
  fi
}

rig volume 2% -- --backing-size 256MiB --op 0.2
rig volume-often 30% -- --backing-size 256MiB --op 0.2
rig zones 2% --image --blocks 8192 -- --preset femu-zns --set geometry.pages=16 \
  --set namespace.zone_size=4MiB --size 128MiB
rig dmz 2% --blocks 12288 --cache 32MiB -- --preset femu-zns --set geometry.pages=16 \
  --set namespace.zone_size=4MiB --size 128MiB
rig ssd 2% --noun ssd --blocks 10000 -- --preset tlc --size 64MiB --set buffer.size=1MiB
