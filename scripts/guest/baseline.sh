# Runs in the guest: ext4 and fio on the kernel target, the rows of zoned.md, section 9, and two more. Arguments: seconds per row,
# and rows. One line per row: name, MiB that fio wrote, and what `since_mark` tells (its chunk is that of the journal) of the time since
# the file system was mounted; with RECORD=1 since before it was made, and what reached the target is left in trace-NAME, as tracefs
# has it.
. ./dmz.sh
seconds=$1
shift
tracing=/sys/kernel/tracing/instances/onefold
events="block_bio_queue block_bio_complete"

# row NAME DATA-MODE PREFILL FIO-OPTION...: PREFILL is the size of a file that is written before, or no.
row() {
  local name=$1 mode=$2 prefill=$3 user=0 journal
  shift 3
  new_dmz || exit 1
  [ -z "${RECORD:-}" ] || { mark; record_begin || exit 1; }
  /bin/mke2fs -q -t ext4 -J size=64 -E lazy_itable_init=0 /dev/mapper/t || exit 1
  journal=$(journal_chunk) || exit 1
  mount -t ext4 -o "data=$mode" /dev/mapper/t /mnt || exit 1
  [ -n "${RECORD:-}" ] || mark
  [ "$prefill" = no ] || user=$(load --rw=write --bs=1m --size="$prefill" --end_fsync=1)
  user=$((user + $(load "$@")))
  umount /mnt
  echo "$name $((user / 1024)).$((user % 1024 * 10 / 1024)) $(since_mark "$journal")"
  record_end "trace-$name" || exit 1
  stop_dmz || exit 1
}

# For some seconds, at the depth of the paper.
random() {
  local name=$1 mode=$2 prefill=$3
  shift 3
  row "$name" "$mode" "$prefill" --bs=4k --iodepth=32 --norandommap --time_based --runtime="$seconds" "$@"
}

# The chunk in which the journal begins. Blocks have 4 KiB, and inode 8 is the journal.
journal_chunk() {
  echo $(($(debugfs -R 'bmap <8> 0' /dev/mapper/t 2>/dev/null) * 8 / $(cat /sys/block/nvme0n1/queue/chunk_sectors)))
}

# KiB written.
load() {
  fio --name=t --filename=/mnt/f --ioengine=libaio --direct=1 --randseed=1 --allow_mounted_write=1 --output-format=terse "$@" \
    2>/tmp/fio | awk -F';' '{ print $47 }'
}

record_begin() {
  [ -d /sys/kernel/tracing/instances ] || mount -t tracefs tracefs /sys/kernel/tracing || return 1
  mkdir -p "$tracing"
  echo 98304 >"$tracing/buffer_size_kb"
  echo mono >"$tracing/trace_clock"
  local event device=$((0x$(stat -c %t /dev/dm-0) << 20 | 0x$(stat -c %T /dev/dm-0)))
  for event in $events; do
    echo "dev == $device" >"$tracing/events/block/$event/filter"
    echo 1 >"$tracing/events/block/$event/enable"
  done
}

record_end() {
  [ -n "${RECORD:-}" ] || return 0
  for event in $events; do echo 0 >"$tracing/events/block/$event/enable"; done
  cat "$tracing/trace" >"/share/$1"
  echo >"$tracing/trace"
  ! grep -h '^overrun: [1-9]' "$tracing"/per_cpu/*/stats || { echo "events of $1 were lost"; return 1; }
}

modprobe ext4 && prepare_dmz || exit 1
for wanted in "$@"; do
  case $wanted in
    1) random 1 ordered no --rw=randwrite --size=2g ;;
    2) random 2 journal no --rw=randwrite --size=2g ;;
    3) random 3 ordered no --rw=randwrite --size=2g --random_distribution=zipf:1.2 ;;
    4) random 4 ordered 640m --rw=randwrite --size=640m ;;
    5) random 5 journal 640m --rw=randwrite --size=640m ;;
    6) row 6 ordered no --rw=write --bs=128k --iodepth=8 --size=1g --end_fsync=1 ;;
    7) random 7 ordered no --rw=randrw --rwmixread=30 --fsync=32 --size=1g ;;
  esac
done
