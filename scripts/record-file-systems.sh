#!/usr/bin/env bash
# Records what ext4, XFS and btrfs ask of a drive under the loads of Sung 2022 and Han 2021: fio in
# order and at random (Sung 8 and 9, Han 6), FFSB writing, and reading and writing (Sung 11 and 12, Han 7), and PostMark (Han 8).
# FFSB and PostMark are done by fio with as many files, and by a loop over files; sizes are a 128th of the papers'. Needs root,
# /dev/fuse, loop devices and fio.
#
#   scripts/record-file-systems.sh FOLDER [ext4|xfs|btrfs]...      all three; FOLDER gets FS-LOAD.oft.zst
set -uo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h | --help | '') sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
out=$1 && shift
[ $# -gt 0 ] || set -- ext4 xfs btrfs
mkdir -p "$out"

. scripts/served.sh
missing=$(missing_for_served fio zstd)
if [ -n "$missing" ]; then
  echo "skipped: recording file systems (missing $missing)"
  exit 0
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
fi

folder=$(mktemp -d)
image=$folder/disk.img fuse=$folder/fuse mount=$folder/mount
mkdir "$fuse" "$mount"
trap 'tear_down; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

fail() {
  echo "record-file-systems: $*" >&2
  [ ! -s "$folder/log" ] || tail -n 20 "$folder/log" >&2
  exit 1
}
# Through the page cache, as in the papers; what is read is not there yet. Their files are larger than memory, so write-back begins long
# before the end: here after each 64 writes of a thread.
run_fio() {
  fio --name=load --directory="$mount" --bs=4k --ioengine=psync --thread --group_reporting --invalidate=1 --end_fsync=1 \
    --sync_file_range=write:64 --randseed=42 "$@" > "$folder/fio" 2>&1 || { cat "$folder/fio" >&2; return 1; }
}
# Eight threads, a file each.
fio_files() { run_fio --numjobs=8 --size=24m "$@"; }
# 104 files of 2 MiB, eight threads with 13 each.
ffsb() { run_fio --numjobs=8 --nrfiles=13 --filesize=2m --size=26m --file_service_type=random "$@"; }
# 20 files of up to 7 MiB; transactions that read or append, make or delete one; then all go.
postmark() {
  local n file transaction
  RANDOM=42
  for n in $(seq 20); do head -c $(((1 + RANDOM % 7) << 20)) /dev/urandom > "$mount/$n" || return 1; done
  sync -f "$mount" && echo 3 > /proc/sys/vm/drop_caches
  for transaction in $(seq 60); do
    file=$mount/$((1 + RANDOM % 20))
    if [ $((RANDOM % 2)) = 0 ]; then
      cat "$file" > /dev/null 2>&1
    else
      head -c 65536 /dev/urandom >> "$file" || return 1
    fi
    file=$mount/$((1 + RANDOM % 20))
    if [ $((RANDOM % 2)) = 0 ]; then rm -f "$file"; else
      head -c $(((1 + RANDOM % 7) << 20)) /dev/urandom > "$file" || return 1
    fi
    [ $((transaction % 10)) != 0 ] || sync -f "$mount"
  done
  rm -f "$mount"/[0-9]* && sync -f "$mount"
}
# What is there before the recording.
prepare() {
  case $1 in
    fio-rand) fio_files --rw=write ;;
    ffsb-write | ffsb-mixed) ffsb --rw=write ;;
  esac
}
load() {
  case $1 in
    fio-seq) fio_files --rw=write ;;
    fio-rand) fio_files --rw=randwrite ;;
    ffsb-write) ffsb --rw=randwrite ;;
    ffsb-mixed) ffsb --rw=randrw --rwmixread=50 ;;
    postmark) postmark ;;
  esac
}

# The file system is made, and filled, before; recorded is from the mount on.
record() {
  local fs=$1 name=$2 trace=$folder/$1-$2.oft
  rm -f "$image"
  "$onefold" ssd create "$image" --preset tlc --size 768MiB --quiet > /dev/null || return 1
  serve_options=(--latency none)
  serve && attach && make_fs "$fs" > /dev/null 2>&1 && mount_fs && prepare "$name" && umount "$mount" && detach && stop || return 1
  serve_options=(--latency none --record "$trace")
  serve && attach && mount_fs || return 1
  echo 3 > /proc/sys/vm/drop_caches
  load "$name" && umount "$mount" && detach && stop || return 1
  zstd -q -19 -f "$trace" -o "$out/$fs-$name.oft.zst" && rm "$trace"
}

for fs in "$@"; do
  case $fs in ext4 | xfs | btrfs) ;; *) echo "record-file-systems: unknown file system $fs" >&2; exit 2 ;; esac
  command -v "mkfs.$fs" > /dev/null || { echo "skipped: $fs (mkfs.$fs is missing)"; continue; }
  for name in fio-seq fio-rand ffsb-write ffsb-mixed postmark; do
    record "$fs" "$name" || fail "$fs under $name"
    echo "$fs $name: $(stat -c %s "$out/$fs-$name.oft.zst") bytes"
  done
done
