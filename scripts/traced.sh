# For scripts that record what a file system asks of a loop device; sourced. They set `out`, a folder, and put the file system of `loop` on
# `work`/mnt. Needs root, tracefs and `onefold`, a program.
#
# RECORD_RAW=1 keeps the text of the kernel instead (NAME.txt), and needs no program.
# shellcheck shell=bash
tracing=/sys/kernel/tracing instance=/sys/kernel/tracing/instances/onefold
work=$(mktemp --directory)
loop='' pipe=''
finish() {
  [ -z "$pipe" ] || kill "$pipe" 2>/dev/null || true
  mountpoint -q "$work/mnt" && umount "$work/mnt"
  [ -z "$loop" ] || losetup -d "$loop"
  [ ! -d "$instance" ] || rmdir "$instance"
  rm -rf "$work"
}
trap finish EXIT
mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
mkdir -p "$out" "$work/mnt" "$instance"
echo 65536 >"$instance/buffer_size_kb"

# record NAME COMMAND...: requests to the loop device while the command runs.
record() {
  local name=$1 device
  device=$(lsblk -dno MAJ:MIN "$loop" | tr -d ' ')
  echo "dev == $((${device%:*} << 20 | ${device#*:}))" >"$instance/events/block/block_bio_queue/filter"
  echo >"$instance/trace"
  echo 1 >"$instance/events/block/block_bio_queue/enable"
  cat "$instance/trace_pipe" >"$work/raw" &
  pipe=$!
  "${@:2}"
  sleep 1
  echo 0 >"$instance/events/block/block_bio_queue/enable"
  sleep 1
  kill "$pipe"; wait "$pipe" 2>/dev/null || true
  pipe=''
  grep -h overrun "$instance"/per_cpu/*/stats | awk '{ lost += $2 } END { if (lost > 0) { print "lost " lost " events"; exit 1 } }'
  if [ -n "${RECORD_RAW:-}" ]; then cp "$work/raw" "$out/$name.txt"; return; fi
  "$onefold" trace convert "$work/raw" --event Q --to onefold-csv --force -o "$out/$name.csv.zst"
}
