#!/usr/bin/env bash
# Records what ext4 asks of a device for the loads of Choi 2022, before the block layer merges anything: fio writes 4 KiB at
# random into a file, in data=ordered and data=journal, filled before or sparse. Needs root, a loop device, tracefs and fio.
#
#   scripts/record-ext4.sh FOLDER      writes FOLDER/rec-ext4-{ordered,journal}-{filled,sparse}.csv.zst
#
# RECORD_WRITES=40000 are the writes of a run, RECORD_IOPS=4000 their rate, RECORD_FILE=640M the file.
set -euo pipefail
[ $# = 1 ] || { sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
out=$(realpath "$1")
cd "$(dirname "$0")/.."
onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/release/onefold}
writes=${RECORD_WRITES:-40000} iops=${RECORD_IOPS:-4000} file=${RECORD_FILE:-640M}
. scripts/traced.sh

load() {
  fio --name=load --directory="$work/mnt" --filename=file --size="$file" "$@" --direct=1 --ioengine=libaio --iodepth=32 \
    --bs=4k --randrepeat=0 --randseed=1 --fallocate=none --output="$work/fio"
}

random() {
  load --rw=randwrite --rate_iops="$iops" --number_ios="$writes" --norandommap
}

for mode in ordered journal; do
  for kind in filled sparse; do
    truncate -s 0 "$work/image"
    truncate -s 3968M "$work/image"
    loop=$(losetup -b 4096 -f --show "$work/image")
    mkfs.ext4 -q -b 4096 -J size=64 -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
    mount -o "data=$mode" "$loop" "$work/mnt"
    if [ "$kind" = filled ]; then load --rw=write --bs=1M --end_fsync=1; fi
    sync; sleep 1
    record "rec-ext4-$mode-$kind" random
    umount "$work/mnt"
    debugfs -R 'stat <8>' "$loop" 2>/dev/null | sed -n '/EXTENTS/,$p' | tr '\n' ' '
    echo
    losetup -d "$loop"
    loop=''
  done
done
