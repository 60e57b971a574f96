#!/usr/bin/env bash
# The main job in one go. First a recorded RocksDB trace runs through two modelled drives: a table
# side by side and an HTML report. Then, with root and /dev/fuse, ext4 lives on an emulated 8 GiB SSD
# whose server is killed in the middle of writing: after a restart the file system is clean, every
# file that was fsynced is intact, and the device tells its write amplification.
set -uo pipefail
cd "$(dirname "$0")/.."

out=out
mkdir -p "$out"
say() { printf '\n== %s\n' "$*"; }
fail() { printf 'demo: FAILED: %s\n' "$*" >&2; exit 1; }

say "building"
cargo build --release --locked --package onefold || fail "the build"
onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
begin=$SECONDS

say "a recorded RocksDB trace (YCSB-A on ext4) on two 8 GiB drives, filled before: TLC with a 4 KiB and QLC with a 16 KiB indirection unit"
for preset in tlc qlc-16k; do
  "$onefold" sim run --preset "$preset" --set geometry.blocks=144 --set capacity.logical=8GiB \
    --set precondition.fill=1.0 --set run.mode=closed --set run.qd=32 \
    --trace traces/rec-rocksdb-ycsba-ext4.csv.zst --format json -o "$out/$preset.json" \
    || fail "sim run on $preset"
done
"$onefold" report --format table "$out/tlc.json" "$out/qlc-16k.json" || fail "the table"
"$onefold" report "$out/tlc.json" "$out/qlc-16k.json" -o "$out/report.html" || fail "the report"

missing=()
[ "$(id -u)" = 0 ] || missing+=("root")
[ -c /dev/fuse ] || missing+=("/dev/fuse")
[ -e /dev/loop-control ] || missing+=("loop devices")
for program in mkfs.ext4 losetup fsck.ext4 sha256sum; do
  command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "skipped the file system on an emulated SSD: missing $(IFS=,; echo "${missing[*]}")"
  say "done in $((SECONDS - begin)) s after the build; open $out/report.html"
  exit 0
fi

folder=$(mktemp --directory)
image=$folder/ssd.img fuse=$folder/fuse mount=$folder/mnt log=$folder/serve.log
mkdir "$fuse" "$mount"
server='' loop='' writer=''
clean_up() {
  [ -n "$writer" ] && kill "$writer" 2>/dev/null
  mountpoint --quiet "$mount" && umount --lazy "$mount"
  [ -n "$loop" ] && losetup --detach "$loop" 2>/dev/null
  [ -n "$server" ] && kill -9 "$server" 2>/dev/null
  mountpoint --quiet "$fuse" && umount --lazy "$fuse"
  rm -rf "$folder"
}
trap clean_up EXIT

serve() {
  "$onefold" ssd serve "$image" --fuse "$fuse" --latency none >"$log" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    [ -s "$fuse/disk" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; fail "the server"; }
    sleep 0.1
  done
  loop=$(losetup --find --show --direct-io=on "$fuse/disk") || fail "losetup"
  grep -q "$fuse" "/sys/block/$(basename "$loop")/loop/backing_file" || fail "the loop device is not ours"
}

say "ext4 on an emulated 8 GiB SSD, through FUSE and a loop device"
"$onefold" ssd create "$image" --preset tlc --size 8GiB || fail "ssd create"
serve
mkfs.ext4 -q "$loop" || fail "mkfs"
mount "$loop" "$mount" || fail "mount"

say "writing files with fsync; the server is killed in the middle"
(
  for n in $(seq 100000); do
    head -c $((4096 + RANDOM * 32)) /dev/urandom >"$mount/$n.tmp" || exit 0
    sum=$(sha256sum <"$mount/$n.tmp") || exit 0
    sync "$mount/$n.tmp" && mv "$mount/$n.tmp" "$mount/$n" && sync "$mount" || exit 0
    echo "$n $sum" >>"$folder/acknowledged"
  done
) 2>/dev/null &
writer=$!
sleep 6
kill -9 "$server"
wait "$server" 2>/dev/null
wait "$writer" 2>/dev/null
writer='' server=''
count=$(wc -l <"$folder/acknowledged")
echo "killed with SIGKILL after $count files were written and fsynced"
umount --lazy "$mount"
losetup --detach "$loop"
umount --lazy "$fuse"
sleep 1

say "restart: recovery, fsck, every fsynced file"
serve
fsck.ext4 -fp "$loop"
[ $? -le 1 ] || fail "fsck found damage"
fsck.ext4 -fn "$loop" >/dev/null 2>&1 || fail "fsck is not clean"
echo "fsck: clean"
mount "$loop" "$mount" || fail "mount after the crash"
intact=0
while read -r name sum _; do
  [ "$(sha256sum <"$mount/$name" 2>/dev/null | cut -d' ' -f1)" = "$sum" ] || fail "file $name is damaged"
  intact=$((intact + 1))
done <"$folder/acknowledged"
echo "$intact of $count fsynced files intact"
umount "$mount"
losetup --detach "$loop"
loop=''

say "the device's own account"
"$onefold" ssd info "$image" || fail "ssd info"
kill -TERM "$server"
wait "$server" || fail "clean shutdown"
server=''
"$onefold" ssd check "$image" || fail "ssd check"
say "done in $((SECONDS - begin)) s after the build; open $out/report.html"
