# Runs in the guest: one request after the other on the kernel target, each when reclaim has come to rest, so that the order of
# its actions depends on nothing but the requests. `requests` has a line for each: operation (w, r, d for discard, f for flush,
# i for a pause), first block and blocks (seconds of a pause). Leaves `recorded`, the same with the time of each in ms before it,
# and `actions`, what reclaim did.
. ./dmz.sh

# Until every action that began has ended and none has begun for a while. Busy for 30 s: never.
settle() {
  local state before='' tries=0
  while [ $tries -lt 150 ]; do
    state=$(awk '/ move / { begun++ } /Reclaimed|interrupted/ { ended++ } END { print begun - ended, begun }' /tmp/kmsg)
    case $state in
      "0 "*) [ "$state" != "$before" ] || return 0 ;;
    esac
    before=$state
    tries=$((tries + 1))
    sleep 0.2
  done
  echo "reclaim does not come to rest"
  exit 1
}

now_ms() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }

request() {
  local op=$1 at=$2 count=$3
  case $op in
    w) dd if=/dev/zero of=/dev/mapper/t bs=$((count * 4096)) count=1 seek=$((at * 4096)) oflag=direct,seek_bytes conv=notrunc ;;
    r) dd if=/dev/mapper/t of=/dev/null bs=$((count * 4096)) count=1 skip=$((at * 4096)) iflag=direct,skip_bytes ;;
    d) /bin/blkdiscard -o $((at * 4096)) -l $((count * 4096)) /dev/mapper/t ;;
    f) dd if=/dev/zero of=/dev/mapper/t bs=4096 count=0 conv=notrunc,fsync ;;
    i) sleep "$at" ;;
  esac 2>/tmp/request || { echo "failed: $*"; cat /tmp/request; exit 1; }
}

prepare_dmz && new_dmz || exit 1
mark
begin=$(now_ms)
while read -r op at count; do
  [ "$op" = i ] || echo "$(($(now_ms) - begin)) $op $at $count" >>recorded
  request "$op" "$at" "$count"
  settle
done <requests
since_mark
sed -n 's/.*zoned reclaim: ([^)]*): //p' /tmp/kmsg >actions
stop_dmz
