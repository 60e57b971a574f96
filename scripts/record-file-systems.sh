#!/usr/bin/env bash
# Records what ext4, XFS, btrfs and F2FS ask of a drive under the loads of Sung 2022 and Han 2021 (scripts/file-system-loads.sh).
# ext4, XFS and btrfs are those of this machine's kernel: root, /dev/fuse, loop devices and fio. F2FS is that of the guest's kernel
# (scripts/guest.sh): QEMU; two boots for each load, ten minutes or more where the processor is emulated. What is missing is skipped.
#
#   scripts/record-file-systems.sh FOLDER [ext4|xfs|btrfs|f2fs]...      all four; FOLDER gets FS-LOAD.oft.zst
set -uo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h | --help | '') sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
out=$1 && shift
[ $# -gt 0 ] || set -- ext4 xfs btrfs f2fs
mkdir -p "$out"

. scripts/served.sh
. scripts/served-guest.sh
. scripts/file-system-loads.sh
onefold=${ONEFOLD:-}
build() {
  cargo build --release --locked --package onefold && onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
}

folder=$(mktemp -d)
image=$folder/disk.img fuse=$folder/fuse mount=$folder/mount socket=$folder/nbd share=$folder/share
mkdir "$fuse" "$mount" "$share"
cp scripts/file-system-loads.sh scripts/guest/loads.sh "$share"
trap 'tear_down; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

fail() {
  echo "record-file-systems: $*" >&2
  [ ! -s "$folder/log" ] || tail -n 20 "$folder/log" >&2
  exit 1
}
# prepare or load, on the served SSD, by this machine's kernel.
here() {
  serve && attach || return 1
  [ "$1" = load ] || make_fs "$2" > /dev/null 2>&1 || return 1
  mount_fs && "$1" "$3" && umount "$mount" && detach && stop
}
# The same by the guest's.
there() { in_guest "sh ./loads.sh $1 $3"; }
# The file system is made, and filled, before; recorded is from the mount on.
record() {
  local kernel=$1 fs=$2 name=$3 trace=$folder/$2-$3.oft
  rm -f "$image"
  "$onefold" ssd create "$image" --preset tlc --size 768MiB --quiet > /dev/null || return 1
  serve_options=(--latency none)
  "$kernel" prepare "$fs" "$name" || return 1
  serve_options=(--latency none --record "$trace")
  "$kernel" load "$fs" "$name" || return 1
  zstd -q -19 -f "$trace" -o "$out/$fs-$name.oft.zst" && rm "$trace"
}

for fs in "$@"; do
  case $fs in
    ext4 | xfs | btrfs) kernel=here missing=$(missing_for_served fio zstd "mkfs.$fs") ;;
    f2fs) kernel=there missing=$(missing_for_guest) ;;
    *) echo "record-file-systems: unknown file system $fs" >&2; exit 2 ;;
  esac
  [ -z "$missing" ] || { echo "skipped: $fs (missing $missing)"; continue; }
  [ -n "$onefold" ] || build || exit 1
  for name in fio-seq fio-rand ffsb-write ffsb-mixed postmark; do
    record "$kernel" "$fs" "$name" || fail "$fs under $name"
    echo "$fs $name: $(stat -c %s "$out/$fs-$name.oft.zst") bytes"
  done
done
