# Runs in the guest: lays images of zoned volumes on both devices, checks them with the kernel's tool, reads them through the
# kernel's target, writes to them through it, and takes the images back. One folder per image; see images.rs of onefold-zoned.
. ./dmz.sh
zone=1048576 # bytes of a zone

# Sequential writes up to each write pointer, which is all a zoned device takes.
lay() {
  local number=0 blocks
  dd if="$1/regular" of=/dev/vda bs=1M conv=notrunc,fsync || return 1
  /bin/blkzone reset /dev/nvme0n1 || return 1
  while read -r blocks; do
    if [ "$blocks" -gt 0 ]; then
      dd if="$1/zoned" of=/dev/nvme0n1 bs=$((blocks * 4096)) count=1 iflag=skip_bytes,fullblock oflag=seek_bytes,direct \
        skip=$((number * zone)) seek=$((number * zone)) conv=notrunc || return 1
    fi
    number=$((number + 1))
  done <"$1/wp"
}

take_back() {
  dd if=/dev/vda of="$1/regular" bs=1M iflag=direct && dd if=/dev/nvme0n1 of="$1/zoned" bs=1M iflag=direct || return 1
  /bin/blkzone report /dev/nvme0n1 | awk '
    { match($0, /wptr 0x[0-9a-f]+/); wp = substr($0, RSTART + 5, RLENGTH - 5)
      match($0, /len 0x[0-9a-f]+/); len = substr($0, RSTART + 4, RLENGTH - 4)
      print ($0 ~ /zcond:14/ ? len : wp) }' | while read -r sectors; do echo $((sectors / 8)); done >"$1/wp"
}

check() {
  # shellcheck disable=SC2086
  dmzadm --check $devices >"$1" 2>&1 && grep -q '^No error detected' "$1" || { echo "dmzadm --check fails:"; cat "$1"; return 1; }
}

# Overwrites, appends and discards, so that the target maps, buffers and reclaims.
use() {
  awk -v seed="$1" -v blocks="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < 60; i++) { n = 1 + int(rand() * 16); print rand() < 0.85 ? "w" : "d", int(rand() * (blocks - n)), n }
  }' | while read -r op at count; do
    case $op in
      w) dd if=/dev/urandom of=/dev/dm-0 bs=$((count * 4096)) count=1 seek=$((at * 4096)) oflag=direct,seek_bytes conv=notrunc ;;
      d) /bin/blkdiscard -o $((at * 4096)) -l $((count * 4096)) /dev/dm-0 ;;
    esac || exit 1
  done
}

one() {
  local folder=$1 back=$1/back blocks
  mkdir -p "$back"
  lay "$folder" 2>/tmp/log && check "$folder/check" && start_dmz || return 1
  dd if=/dev/dm-0 of="$folder/read" bs=1M iflag=direct 2>/tmp/log || return 1
  blocks=$(($(cat /sys/block/dm-0/size) / 8))
  use "$folder" "$blocks" 2>/tmp/log || return 1
  dd if=/dev/dm-0 of="$back/read" bs=1M iflag=direct 2>/tmp/log || return 1
  stop_dmz && check "$back/check" && take_back "$back" 2>/tmp/log
}

prepare_dmz || exit 1
for folder in [0-9]*; do
  one "$folder" || { echo "image $folder failed"; cat /tmp/log; exit 1; }
  echo "image $folder: checked, read, written and checked again"
done
