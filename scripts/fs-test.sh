#!/usr/bin/env bash
# Unmodified file systems on a served device or volume, through FUSE and a loop device: mkfs, fio with verify
# and fsync, fstrim, fsck, SIGTERM, `check`; then the server is killed under a mounted file
# system, and the file system is mounted again from what is left. Needs root, /dev/fuse and loop
# devices. Prints PASS or FAIL per step; ends with 1 if a step failed.
#
#   scripts/fs-test.sh [ssd|volume|zoned|dmz|dmz-sums] [ext4|xfs|btrfs]...
#
# zoned is a volume on an emulated SSD with zones, dmz one of policy dmz with a regular device beside that, dmz-sums the same with
# checksums of that device. FS_TEST_MODE is the mode of the volume (default log), FS_TEST_JOURNAL what becomes of the journal with
# dmz (default set).
set -uo pipefail
cd "$(dirname "$0")/.."

size=${FS_TEST_SIZE:-2GiB}
preset=${FS_TEST_PRESET:-tlc}
backing=${FS_TEST_BACKING:-3GiB}
data=${FS_TEST_DATA:-256m}
mode=${FS_TEST_MODE:-log}
on=ssd
zoned=
sums=()
case ${1:-} in
  ssd | volume) on=$1 && shift ;;
  zoned) on=volume zoned=yes && shift ;;
  dmz) on=dmz && shift ;;
  dmz-sums) on=dmz-sums sums=(--cache-checksums) && shift ;;
esac
[ $# -gt 0 ] || set -- ext4 xfs btrfs

failures=0 skips=0
skip() { echo "SKIP  $*"; skips=$((skips + 1)); }
# step NAME COMMAND..: runs a command, shows its output only if it fails. In this shell, so that a
# step can set variables.
step() {
  local name=$1
  shift
  if "$@" > "$folder/output" 2>&1; then
    echo "PASS  $name"
  else
    echo "FAIL  $name: $*"
    tail -n 20 "$folder/output" | sed 's/^/      /'
    failures=$((failures + 1))
    return 1
  fi
}

. scripts/served.sh
if [ "$on" != ssd ]; then noun=volume serve_options=(); fi
missing=$(missing_for_served fio fstrim python3)
if [ -n "$missing" ]; then
  skip "everything: missing $missing"
  case ",${ONEFOLD_REQUIRE:-}," in *,t1,*) exit 1 ;; esac
  exit 0
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
fi

folder=$(mktemp --directory)
cache=$folder/cache.img
if [[ "$on" = dmz* ]]; then serve_options=(--cache "$cache" --journal "${FS_TEST_JOURNAL:-set}"); fi
image=$folder/disk.img fuse=$folder/fuse mount=$folder/mount
mkdir "$fuse" "$mount"

finish() {
  tear_down
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

stored_pages() {
  "$onefold" ssd info "$image" --format json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["mapped_pages"])'
}
fio_verify() {
  fio --name=verify --verify_state_save=0 --directory="$mount" --size="$data" --rw=randwrite --bsrange=4k-64k \
    --ioengine=psync --direct=1 --fsync=32 --verify=crc32c --verify_fatal=1 --do_verify=1 \
    --output-format=terse
}
create() {
  case $on in
    dmz*)
      rm -f "$cache"
      "$onefold" ssd create "$image" --preset zns-proto --size "$backing" &&
        "$onefold" volume create "$image" --zoned dmz --cache "$cache" --cache-size 1GiB "${sums[@]}"
      ;;
    ssd) "$onefold" ssd create "$image" --preset "$preset" --size "$size" ;;
    volume)
      if [ -n "$zoned" ]; then
        "$onefold" ssd create "$image" --preset zns-proto --size "$backing" &&
          "$onefold" volume create "$image" --size "$size"
        return
      fi
      "$onefold" volume create "$image" --size "$size" --backing-size "$backing" --mode "$mode"
      ;;
  esac
}
check() {
  case $on in
    dmz*) "$onefold" volume check "$image" --cache "$cache" --data && "$onefold" ssd check "$image" ;;
    ssd) "$onefold" ssd check "$image" ;;
    volume) "$onefold" volume check "$image" --data && { [ -z "$zoned" ] || "$onefold" ssd check "$image"; } ;;
  esac
}
# Trimming deleted files has to give flash back. XFS frees them some time after the sync.
trim() {
  local before after
  if [ "$on" != ssd ]; then
    rm -f "$mount"/verify*
    sync --file-system "$mount" && fstrim "$mount"
    return
  fi
  sync --file-system "$mount"
  before=$(stored_pages) || return 1
  rm -f "$mount"/verify*
  for _ in $(seq 15); do
    sync --file-system "$mount" && fstrim "$mount" || return 1
    after=$(stored_pages) || return 1
    echo "$before pages stored before, $after after"
    if [ "$after" -lt $((before - 32768)) ]; then return 0; fi
    sleep 1
  done
  return 1
}
write_proof() {
  mkdir -p "$mount/proof" || return 1
  for n in $(seq 20); do
    head -c 300000 /dev/urandom > "$mount/proof/$n" || return 1
  done
  (cd "$mount/proof" && sha256sum -- *) > "$folder/proof" && sync --file-system "$mount"
}
check_proof() { (cd "$mount/proof" && sha256sum --check --quiet "$folder/proof"); }
# Kills the server while fio writes; what was synchronised before has to be there afterwards.
crash() {
  fio --name=load --directory="$mount" --size=64m --rw=randwrite --bs=4k --ioengine=psync \
    --direct=1 --time_based --runtime=30 > /dev/null 2>&1 &
  local load=$!
  sleep 2
  power_off
  wait "$load"
  let_go
}

one() {
  local fs=$1
  rm -f "$image" "$image.sock"
  step "$on, $fs: create" create || return
  step "$on, $fs: serve" serve || return
  step "$on, $fs: loop device" attach || return
  step "$on, $fs: mkfs" make_fs "$fs" || return
  step "$on, $fs: mount" mount_fs || return
  step "$on, $fs: fio, verify and fsync" fio_verify
  step "$on, $fs: fstrim" trim
  step "$on, $fs: write and sync" write_proof
  step "$on, $fs: umount" umount "$mount" || return
  step "$on, $fs: fsck" check_fs "$fs"
  step "$on, $fs: detach" detach || return
  step "$on, $fs: SIGTERM" stop || return
  step "$on, $fs: check" check

  step "$on, $fs: serve again" serve || return
  step "$on, $fs: loop device again" attach || return
  step "$on, $fs: mount again" mount_fs || return
  step "$on, $fs: files are there" check_proof
  step "$on, $fs: kill -9 under load" crash || return
  step "$on, $fs: check after the kill" check
  step "$on, $fs: recover" serve || return
  step "$on, $fs: loop device after the kill" attach || return
  step "$on, $fs: mount after the kill" mount_fs || return
  step "$on, $fs: files are there after the kill" check_proof
  step "$on, $fs: umount after the kill" umount "$mount" || return
  step "$on, $fs: fsck after the kill" check_fs "$fs"
  [ "$on" != volume ] || members "$fs"
}

family() { "$onefold" volume "$@"; }
# What is served is a snapshot or clone from now on, or the device itself.
serve_member() { serve_options=(${1:+--snapshot "$1"}) && serve; }
leave() { umount "$mount" && detach && stop; }
overwrite() { rm -rf "$mount/proof" && fio_verify && fstrim "$mount"; }
# A snapshot keeps what the device loses, and a clone of it can be written.
members() {
  local fs=$1
  step "$on, $fs: stop before the snapshot" eval 'detach && stop' || return
  step "$on, $fs: snapshot" family snapshot create "$image" daily || return
  step "$on, $fs: serve beside the snapshot" serve || return
  step "$on, $fs: mount beside the snapshot" eval 'attach && mount_fs' || return
  step "$on, $fs: delete, write and verify" overwrite
  step "$on, $fs: stop with a snapshot" leave || return
  step "$on, $fs: check with a snapshot" check
  step "$on, $fs: serve the snapshot" serve_member daily || return
  step "$on, $fs: loop device on the snapshot" attach --read-only || return
  step "$on, $fs: fsck of the snapshot" check_fs "$fs"
  step "$on, $fs: mount the snapshot" mount_fs -o ro || return
  step "$on, $fs: files are in the snapshot" check_proof
  step "$on, $fs: stop the snapshot" leave || return
  step "$on, $fs: clone" family clone "$image" copy --of daily || return
  step "$on, $fs: serve the clone" serve_member copy || return
  step "$on, $fs: mount the clone" eval 'attach && mount_fs' || return
  step "$on, $fs: files are in the clone" check_proof
  step "$on, $fs: write to the clone" fio_verify
  step "$on, $fs: umount the clone" umount "$mount" || return
  step "$on, $fs: fsck of the clone" check_fs "$fs"
  step "$on, $fs: stop the clone" eval 'detach && stop' || return
  step "$on, $fs: delete the snapshot" family snapshot delete "$image" daily
  step "$on, $fs: delete the clone" family snapshot delete "$image" copy
  step "$on, $fs: check without them" check
  serve_options=()
}

for fs in "$@"; do
  case $fs in ext4 | xfs | btrfs) ;; *) echo "unknown file system $fs" >&2; exit 2 ;; esac
  if ! command -v "mkfs.$fs" > /dev/null; then
    skip "$fs: mkfs.$fs is missing"
  elif ! grep -qw "$fs" /proc/filesystems && ! modprobe -q "$fs" 2> /dev/null; then
    skip "$fs: not in this kernel"
  else
    one "$fs"
    tear_down
  fi
done
echo "fs-test: $failures failed, $skips skipped"
[ "$failures" = 0 ]
