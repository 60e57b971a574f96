#!/usr/bin/env bash
# Kills a served device with SIGKILL under load, again and again, and verifies after every restart
# that what was acknowledged as durable is there, and that `check` finds no damage. A third of the
# kills each hit an SSD with small pages and no metadata on flash; one with everything: 16 KiB
# pages, head and tail pages, checkpoints, wear levelling and a small write buffer; and one with a
# buffer that holds half of what is written, append-only isolation, and write-back in the background.
# As many kills, and 1,000 in the full campaign, hit volumes: half of them in mode `log`, so full that it
# cleans all the time, the others in the modes `sung` and `han`; a sixth as many more hit one that compresses, one on a zoned SSD, one of policy `dmz`, and one of that with checksums of its cache. `short` is part of `make test`.
#
#   scripts/crash-campaign.sh [short|full|KILLS] [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."

budget=${1:-full}
case $budget in
  short) kills=6 volume_kills=6 ;;
  full) kills=100 volume_kills=1000 ;;
  '' | *[!0-9]*) sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
  *) kills=$1 volume_kills=$1 ;;
esac
seed=${2:-$((RANDOM * 32768 + RANDOM))}

# The FTL in memory: cuts at every step of short histories of remaps (docs/testing-ssd.md). It prints how many
# distinct crash states there were; CI has 44,175 of them among its tests. Then the volume: cuts at every step of
# all histories of up to three operations in every mode, with failing requests and backings that lied.
if [ $budget = full ]; then
  ONEFOLD_SEEDS=300000 cargo test --release --locked -p onefold-ftl --test ftl \
    -- --nocapture every_cut_of_every_short_history_of_remaps
  ONEFOLD_SEEDS=25000 cargo test --release --locked -p onefold-volume -p onefold-modes --test volume --test modes \
    -- --nocapture --test-threads=1 every_cut_of_every_short_history
fi

# Debian's module belongs to Debian's Python, which need not be the first in PATH.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import nbd' 2>/dev/null; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  echo "skipped: crash campaign (python3-libnbd is missing; make setup installs it)"
  exit 0
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold
  onefold=${CARGO_TARGET_DIR:-target}/release/onefold
fi
folder=$(mktemp --directory)
# The campaign ends its own servers; one that is left is a child of a dead campaign.
trap 'rm -rf "$folder"' EXIT

# Kills what the remaining arguments describe, in a folder of its own.
campaign() {
  local name=$1 count=$2
  shift 2
  mkdir "$folder/$name"
  if ! "$python" scripts/crash_campaign.py --onefold "$onefold" --folder "$folder/$name" \
    --kills "$count" --seed "$seed" "$@"; then
    echo "reproduce: scripts/crash-campaign.sh $budget $seed (device \`$name\`)" >&2
    exit 1
  fi
  rm -r "${folder:?}/$name"
}

small=(--size 80MiB --set geometry.channels=2 --set geometry.ways=1 --set geometry.pages=64)
campaign small $(((kills + 2) / 3)) -- --preset s1 "${small[@]}"
campaign all $(((kills + 1) / 3)) -- --preset tlc "${small[@]}" --set capacity.logical=0.8 \
  --set buffer.size=1MiB
campaign buffer $((kills / 3)) --flush-share 0.01 -- --preset tlc "${small[@]}" \
  --set capacity.logical=0.8 --set buffer.size=32MiB \
  --set "buffer.policy=${CRASH_CAMPAIGN_POLICY:-aoi}" --set buffer.writeback=async

volume() { campaign "volume-$1" "$2" --kind volume -- --mode "$1" --size 80MiB --backing-size 128MiB; }
volume log $((volume_kills / 2))
campaign volume-packed $((volume_kills / 6)) --kind volume -- --mode log --compress zstd --size 80MiB --backing-size 128MiB
# The same on 28 zones of 4 MiB beside labels and roots.
campaign volume-zoned $((volume_kills / 6)) --kind zoned -- --preset femu-zns --set geometry.pages=16 \
  --set namespace.zone_size=4MiB --size 128MiB
# Policy dmz on 32 zones of 4 MiB with a cache of 8, which 12 chunks share: it reclaims all the time.
campaign volume-dmz $((volume_kills / 6)) --kind dmz --span 12288 -- --preset femu-zns --set geometry.pages=16 \
  --set namespace.zone_size=4MiB --size 128MiB
# The same with checksums of the cache, which openings make anew.
campaign volume-dmz-sums $((volume_kills / 6)) --kind dmz --cache-checksums --span 12288 -- --preset femu-zns \
  --set geometry.pages=16 --set namespace.zone_size=4MiB --size 128MiB
volume sung $((volume_kills / 4))
volume han $((volume_kills / 4))
