#!/usr/bin/env bash
# A live RocksDB on ext4 on a served device, beside a hot volume on the same device, once with every
# buffer policy: what does the buffer hit? The store fills and rewrites 100 MB of values; after every
# 32 puts one page of the volume (16 MiB, Zipf 0.99, 70 % writes) is used. A device cannot tell its users
# apart, so the live numbers are those of both together. The requests of the first run are recorded,
# cut at the address where the volume begins, and replayed as two tenants through all policies, mixed
# in the measured ratio of bytes: that gives the hits of the volume alone. Needs root, /dev/fuse, loop
# devices, and the Python package rocksdict, which is installed into a throw-away virtual environment.
#
#   scripts/rocksdb-live.sh [POLICY..]     lru 2l pt-lru vbbms aoi aoi:chunk=4KiB s3-fifo sieve arc unless given
set -uo pipefail
cd "$(dirname "$0")/.."

policies=("$@")
[ $# -gt 0 ] || policies=(lru 2l pt-lru vbbms aoi aoi:chunk=4KiB s3-fifo sieve arc)
size=${ROCKSDB_LIVE_SIZE:-8MiB}
device=$((2 << 30)) border=$((3 << 29))

. scripts/served.sh
skip() {
  echo "skipped: a live RocksDB ($1)"
  case ",${ONEFOLD_REQUIRE:-}," in *,t1,*) exit 1 ;; esac
  exit 0
}
missing=$(missing_for_served mkfs.ext4 python3)
[ -n "$missing" ] || grep -qw ext4 /proc/filesystems || modprobe -q ext4 2> /dev/null || missing=ext4
[ -z "$missing" ] || skip "missing $missing"
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
python=$folder/venv/bin/python
if ! python3 -m venv "$folder/venv" > "$folder/log" 2>&1 \
  || ! "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
    --only-binary :all: rocksdict > "$folder/log" 2>&1 \
  || ! "$python" -c 'import rocksdict' > "$folder/log" 2>&1; then
  skip "rocksdict cannot be installed: $(tail -n 1 "$folder/log")"
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
fi

fuse=$folder/fuse mount=$folder/mount image=$folder/disk.img volume=''
mkdir "$fuse" "$mount"
finish() {
  [ -z "$volume" ] || losetup --detach "$volume"
  tear_down
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM
# need COMMAND..: its output is shown only if it fails, which ends the run.
need() {
  "$@" > "$folder/output" 2>&1 && return
  tail -n 20 "$folder/output" >&2
  echo "rocksdb-live: failed with $policy: $*" >&2
  exit 1
}
attach_volume() { volume=$(losetup --find --show --direct-io=on --offset "$border" "$fuse/disk"); }
detach_volume() { losetup --detach "$volume" && volume=''; }
free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

for policy in "${policies[@]}"; do
  begin=$SECONDS
  rm -f "$image"
  need "$onefold" ssd create "$image" --preset tlc --size 2GiB
  address=127.0.0.1:$(free_port)
  serve_options=(--latency none --set "buffer.policy=$policy" --set "buffer.size=$size" --ui "$address")
  [ -e "$folder/live.oft" ] || serve_options+=(--record "$folder/live.oft")
  need serve
  need attach --sizelimit "$border"
  need attach_volume
  need mkfs.ext4 -q -F "$loop"
  need mount_fs -o discard
  need "$python" scripts/rocksdb_live.py run "$mount/store" "$volume"
  need umount "$mount"
  counted=$(python3 scripts/rocksdb_live.py stats "$address") || exit 1
  echo "$policy $counted" >> "$folder/live"
  need detach_volume
  need detach
  need stop
  echo "$policy: $((SECONDS - begin)) s" >&2
done

policy=replay
need "$onefold" trace convert "$folder/live.oft" --to onefold-csv -o "$folder/live.csv"
sent=$(python3 scripts/rocksdb_live.py split "$folder/live.csv" "$border" "$folder") || exit 1
read -r store_bytes volume_bytes <<< "$sent"
need python3 scripts/rocksdb_live.py study "$folder" "$device" "$border" "$size" \
  "$store_bytes" "$volume_bytes" "${policies[@]}"
need "$onefold" study run "$folder/study.toml" --results "$folder/results"
echo "RocksDB on ext4 beside a hot volume, buffer of $size, bytes read and written" \
  "$((store_bytes >> 20)) : $((volume_bytes >> 20)) MiB; hit ratio of pages"
python3 scripts/rocksdb_live.py table "$folder/results/results.json" "$folder/live"
