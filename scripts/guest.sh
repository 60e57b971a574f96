#!/usr/bin/env bash
# Runs the kernel's own dm-zoned, and a volume on a real zoned block device, in a guest: Debian's kernel under QEMU, made from
# packages that are fetched on the first run into ${XDG_CACHE_HOME:-~/.cache}/onefold-guest. Needs no root. Where QEMU or the
# packages cannot be had it says so and ends with 0; ONEFOLD_REQUIRE=guest makes that an error.
#
#   scripts/guest.sh [baseline|concurrent|f2fs|fidelity|fua|images|log|volume|single|sqlite|sums]...
#
# fidelity, images, log, volume, single and sums if nothing is named.
#
# baseline  ext4 and fio on dm-zoned: bytes per device, flushes, reclaims, and the journal's part of the valid blocks in zones whose
#           reclaim began. GUEST_ROWS="1 2 3 4 5" are the rows (default 5), GUEST_SECONDS=15 the time that each writes.
# concurrent  the same loads on devices that QEMU limits, recorded where they reach dm-zoned, and replayed by `onefold sim run` on
#           devices as fast (preset dmz-guest): bytes of each device, reclaims begun and completed, side by side. GUEST_ROWS (default "1 4 6 7")
#           and GUEST_SECONDS (default 40) as above; ONEFOLD=PROGRAM replaces the release build.
# f2fs      F2FS on an SSD that this machine serves and that keeps a tape: a load, cleaning, the load again; and what a host would have asked
#           that cleans by remap (scripts/remaps_of_tape.py). GUEST_OUT=NAME gets NAME-run.oft, NAME-clean.oft and NAME-again.oft (default f2fs).
# fidelity  the same requests through dm-zoned and through the engine of onefold-zoned: what reclaim does has to be the same, and
#           bytes within 15 %. GUEST_REQUESTS=FILE replaces scripts/guest/requests.
# fua       is a write with FUA durable on dm-zoned? It only tells.
# images    volumes of onefold-zoned after power cuts: dmzadm --check, read and written by dm-zoned, and read here again; and
#           dm-zoned refuses those with a journal block map (the first seed; needs an opened one before). GUEST_SEEDS="1 2 3" are
#           the seeds, GUEST_KINDS="opened raw map returned" which of them.
# log       ext4 on the kernel's dm-log-writes on a served SSD that keeps a tape: `onefold crash` finds the same states in the kernel's
#           log as in the tape, and, as root, in none of them a file is missing that was synchronised.
# volume    a volume of mode log on a zoned block device, served over NBD: ext4, fio with verify, e2fsck, check.
# single    the same with policy dmz on one device with conventional zones; then dm-zoned takes it over.
# sqlite    SQLite with the extension on a drive without a file system that this machine serves over NBD, a block device there
#           as its control export is: it remaps, and rows equal those of stock SQLite, also after a program was killed.
# sums      dm-zoned and dmzadm take a volume of policy dmz, and refuse one whose cache has checksums.
#
# log, volume, single, sqlite and sums build onefold (debug); ONEFOLD=PROGRAM replaces it, and for sqlite what is beside it.
set -uo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h | --help) sed -n '2,31p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
[ $# -gt 0 ] || set -- fidelity images log volume single sums
lack() {
  echo "skipped: the guest with the kernel's dm-zoned ($1)"
  case ",${ONEFOLD_REQUIRE:-}," in *,guest,*) exit 1 ;; esac
  exit 0
}
for program in qemu-system-x86_64 cargo timeout; do
  command -v "$program" >/dev/null || lack "$program is missing"
done
[ "$(uname -m)" = x86_64 ] || lack "it is made for x86-64"
cache=$(scripts/guest/image.sh) || lack "${cache:-no image}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A folder for the guest with the scripts and two empty disks of so many MiB.
folder() {
  mkdir -p "$work/$1"
  cp scripts/guest/*.sh "$work/$1/"
  truncate -s "$2M" "$work/$1/regular.img"
  truncate -s "$3M" "$work/$1/zoned.img"
}

# boot NAME SECONDS COMMAND [QEMU-OPTION...]: runs it in the guest, and prints what it printed if it fails.
boot() {
  echo "$3" >"$work/$1/run.sh"
  scripts/guest/boot.sh "$work/$1" "$2" "${@:4}" && return 0
  echo "guest: $1 failed ($?)" >&2
  cat "$work/$1/output" >&2
  return 1
}

baseline() {
  local seconds=${GUEST_SECONDS:-15} rows=${GUEST_ROWS:-5}
  folder baseline 1024 4096
  boot baseline $((120 + 240 * $(wc -w <<<"$rows"))) "sh ./baseline.sh $seconds $rows" || return 1
  printf '%4s %9s %9s %9s %10s %9s %9s %9s %9s %8s %8s %8s\n' row 'user MiB' 'top MiB' 'conv MiB' 'zoned MiB' phys/user \
    phys/top 'conv fl.' 'zoned fl.' started 'given up' journal
  awk '{ phys = $3 + $5; printf "%4s %9s %9s %9s %10s %9.2f %9.2f %9d %9d %8d %8d %7.1f%%\n", $1, $2, $7, $3, $5, phys / $2,
    phys / $7, $4, $6, $8, $9, ($10 ? 100 * $11 / $10 : 0) }' "$work/baseline/output"
}

concurrent() {
  local seconds=${GUEST_SECONDS:-40} rows=${GUEST_ROWS:-1 4 6 7} onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/release/onefold}
  command -v python3 >/dev/null || { echo "skipped: concurrent loads (python3 is missing)"; return 0; }
  [ -n "${ONEFOLD:-}" ] || cargo build --quiet --release --locked -p onefold || return 1
  folder concurrent 1024 4096
  # The speeds of preset dmz-guest.
  ONEFOLD_GUEST_REGULAR=,throttling.iops-total=2000 ONEFOLD_GUEST_ZONED=,throttling.bps-total=$((32 << 20)) \
    boot concurrent $((120 + 480 * $(wc -w <<<"$rows"))) "RECORD=1 sh ./baseline.sh $seconds $rows" || return 1
  scripts/guest/compare.py "$work/concurrent" "$onefold"
}

fidelity() {
  local ours=$work/fidelity/ours kernel=$work/fidelity/kernel
  folder fidelity 1024 4096
  cp "${GUEST_REQUESTS:-scripts/guest/requests}" "$work/fidelity/requests"
  boot fidelity 600 "sh ./replay.sh" || return 1
  cargo run --quiet --locked -p onefold-zoned --example replay <"$work/fidelity/recorded" >"$ours" || return 1
  grep ' move ' "$work/fidelity/actions" >"$kernel"
  echo "dm-zoned: $(wc -l <"$kernel") reclaims; MiB and flushes: $(cut -d' ' -f1-4 "$work/fidelity/output")"
  echo "onefold:  $(grep -c ' move ' "$ours") reclaims; MiB and flushes: $(grep -v ' move ' "$ours" | tr '\n' ' ')"
  diff --label dm-zoned --label onefold -u "$kernel" <(grep ' move ' "$ours") || return 1
  # MiB on each device, within 15 %.
  awk 'NR == FNR { kernel[1] = $1; kernel[2] = $3; nextfile }
    / MiB, / { n++; if ($1 > kernel[n] * 1.15 + 0.1 || $1 < kernel[n] * 0.85 - 0.1) bad = 1 }
    END { exit bad || n != 2 }' "$work/fidelity/output" "$ours" || { echo "bytes differ by more than 15 %"; return 1; }
  echo "the same actions on the same zones, with the same weights"
}

fua() {
  folder fua 1024 4096
  boot fua 400 "sh ./fua.sh" -action reboot=reset || return 1
  cat "$work/fua/output"
}

# A step of images.rs.
step() {
  ONEFOLD_IMAGES=$work/images cargo test --quiet --locked -p onefold-zoned --test zoned "images::$1" -- --ignored --exact \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
}

images() {
  local kind seed seeds
  folder images 8 24
  for kind in ${GUEST_KINDS:-opened raw map returned}; do
    seeds=${GUEST_SEEDS:-1 2 3}
    # One, and the last: what dm-zoned refused it holds until the guest ends.
    [ "$kind" != map ] || seeds=${seeds%% *}
    for seed in $seeds; do mkdir -p "$work/images/$kind-$seed"; done
  done
  step images_are_written || return 1
  ONEFOLD_GUEST_ZONE=1M boot images 1200 "sh ./images.sh" || return 1
  cat "$work/images/output"
  step the_kernel_read_what_was_flushed && step what_the_kernel_wrote_is_read || return 1
  echo "dm-zoned read what was flushed here, and what it wrote is read here"
}

# A guest that has the command, too, in the folder $1, with zones of size $2, and runs $3.
with_onefold() {
  local onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/debug/onefold}
  [ -n "${ONEFOLD:-}" ] || cargo build --quiet --locked -p onefold || return 1
  # An emulated processor reads it through the folder: the smaller the better.
  strip -o "$work/$1/onefold" "$onefold" || return 1
  ONEFOLD_GUEST_ZONE=$2 boot "$1" 600 "$3" || return 1
  cat "$work/$1/output"
}

# What the disk holds in the states of a tape or of a log, as digests. Kinds differ: one content can be found in several ways, and
# the log has marks.
states_of() {
  "$@" --format json | python3 -c '
import json, sys
states = json.load(sys.stdin)["states"]
print(*sorted({state["digest"] for state in states}), sep="\n")'
}

log() {
  local onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/debug/onefold} states=$work/log/states base=$work/log/base.img of_log
  command -v python3 >/dev/null || { echo "skipped: dm-log-writes (python3 is missing)"; return 0; }
  folder log 256 1
  rm "$work/log/zoned.img"
  with_onefold log 1M "sh ./log.sh" || return 1
  truncate -s 64M "$base"
  of_log=(--log "$work/log/regular.img" --base "$base")
  states_of "$onefold" crash list "$work/log/tape" >"$states-tape" || return 1
  states_of "$onefold" crash list "${of_log[@]}" >"$states-log" || return 1
  diff --label tape --label dm-log-writes -u "$states-tape" "$states-log" || { echo "other states"; return 1; }
  echo "$(wc -l <"$states-log") states of the disk, the same in both"
  [ "$(id -u)" = 0 ] || return 0
  "$onefold" crash explore "${of_log[@]}" --from made --check "sh $PWD/scripts/guest/log-check.sh"
}

# while_served COMMAND..., while the SSD $work/disk.img is served as $work/nbd; `onefold` serves, with options in `served`.
while_served() {
  local server status=0
  "$onefold" ssd serve "$work/disk.img" --latency none --nbd "unix:$work/nbd" --quiet "${served[@]}" &
  server=$!
  for _ in $(seq 100); do [ ! -S "$work/nbd" ] || break; sleep 0.1; done
  "$@" || status=1
  kill -TERM $server
  wait $server || status=1
  return $status
}

f2fs() {
  local onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/debug/onefold} served=(--tape "$work/tape")
  command -v python3 >/dev/null || { echo "skipped: F2FS (python3 is missing)"; return 0; }
  [ -n "${ONEFOLD:-}" ] || cargo build --quiet --locked -p onefold || return 1
  folder f2fs 1 1
  rm "$work/f2fs"/*.img
  "$onefold" ssd create "$work/disk.img" --preset femu32 --set geometry.channels=1 --set geometry.ways=1 --set geometry.pages=128 \
    --set geometry.blocks=720 --set capacity.logical=320MiB --quiet || return 1
  while_served boot f2fs 1800 "sh ./f2fs.sh" \
    -drive "if=none,id=n,file=nbd+unix:///?socket=$work/nbd,format=raw,cache=none" -device virtio-blk-pci,drive=n || return 1
  cat "$work/f2fs/output"
  scripts/remaps_of_tape.py "$work/tape" 2 1 "${GUEST_OUT:-f2fs}"
}

volume() {
  folder volume 1 1024
  rm "$work/volume/regular.img"
  with_onefold volume 16M "sh ./volume.sh log"
}

single() {
  folder single 1 1
  rm "$work/single"/*.img
  with_onefold single 16M "sh ./volume.sh dmz"
}

sqlite() {
  local onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/debug/onefold} served=() name
  [ -n "${ONEFOLD:-}" ] || cargo build --quiet --locked -p onefold -p onefold-sqlite || return 1
  folder sqlite 1 1
  rm "$work/sqlite"/*.img
  for name in libonefold_sqlite.so onefold-sqlite; do strip -o "$work/sqlite/$name" "$(dirname "$onefold")/$name" || return 1; done
  "$onefold" ssd create "$work/disk.img" --size 512MiB --set ftl.remap=lh --quiet || return 1
  while_served boot sqlite 900 "sh ./sqlite.sh" \
    -drive "if=none,id=d,file=nbd+unix:///?socket=$work/nbd,format=raw,cache=none" -device virtio-blk-pci,drive=d \
    -drive "if=none,id=c,file=nbd+unix:///disk.img.ctl?socket=$work/nbd,format=raw,cache=none" -device virtio-blk-pci,drive=c || return 1
  cat "$work/sqlite/output"
}

sums() {
  folder sums 32 64
  with_onefold sums 1M "sh ./sums.sh"
}

status=0
for name in "$@"; do
  case $name in
    baseline | concurrent | f2fs | fidelity | fua | images | log | volume | single | sqlite | sums)
      printf '== guest: %s\n' "$name"
      $name || { echo "FAIL  guest: $name"; status=1; } ;;
    *) echo "guest: $name is not baseline, concurrent, f2fs, fidelity, fua, images, log, volume, single, sqlite or sums; see --help" >&2; exit 2 ;;
  esac
done
exit "$status"
