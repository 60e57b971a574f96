# Runs in the guest: lays images of zoned volumes on both devices, checks them with the kernel's tool, reads them through the
# kernel's target, writes to them through it, and takes the images back. One folder per image, KIND-SEED; see images.rs of
# onefold-zoned.
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

# Blocks before the write pointer, a line for each zone.
pointers() {
  /bin/blkzone report /dev/nvme0n1 | awk '
    { match($0, /wptr 0x[0-9a-f]+/); wp = substr($0, RSTART + 5, RLENGTH - 5)
      match($0, /len 0x[0-9a-f]+/); len = substr($0, RSTART + 4, RLENGTH - 4)
      print ($0 ~ /zcond:14/ ? len : wp) }' | while read -r sectors; do echo $((sectors / 8)); done
}

take_back() {
  dd if=/dev/vda of="$1/regular" bs=1M iflag=direct && dd if=/dev/nvme0n1 of="$1/zoned" bs=1M iflag=direct || return 1
  pointers >"$1/wp"
}

# Whether both devices hold what was laid on them.
unchanged() {
  dd if=/dev/vda bs=1M iflag=direct 2>/tmp/log | cmp - "$1/regular" && pointers | cmp - "$1/wp" &&
    dd if=/dev/nvme0n1 bs=1M iflag=direct 2>/tmp/log | cmp - "$1/zoned"
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

# Reads, writes and takes back what is on the devices; $1/back gets it.
live() {
  local folder=$1 back=$1/back
  start_dmz && dmsetup table "$(cat /sys/block/dm-0/dm/name)" >/tmp/table || return 1
  dd if=/dev/dm-0 of="$folder/read" bs=1M iflag=direct 2>/tmp/log || return 1
  use "$folder" $(($(cat /sys/block/dm-0/size) / 8)) 2>/tmp/log || return 1
  dd if=/dev/dm-0 of="$back/read" bs=1M iflag=direct 2>/tmp/log || return 1
  stop_dmz && check "$back/check" && take_back "$back" 2>/tmp/log
}

# What the tool finds nothing wrong with.
accepted() {
  lay "$1" 2>/tmp/log && check "$1/check" && live "$1" && echo "checked, read, written and checked again"
}

# What a power cut left: the target reads it as it is. What the tool says of it is kept, and after its repair it is like any other.
raw() {
  # shellcheck disable=SC2086
  lay "$1" 2>/tmp/log && { dmzadm --check $devices >"$1/check" 2>&1; start_dmz; } || return 1
  dd if=/dev/dm-0 of="$1/unrepaired" bs=1M iflag=direct 2>/tmp/log && stop_dmz || return 1
  # shellcheck disable=SC2086
  lay "$1" 2>/tmp/log && dmzadm --repair $devices >"$1/repair" 2>&1 || { cat "$1/repair"; return 1; }
  check "$1/repaired" && live "$1" || return 1
  cmp "$1/unrepaired" "$1/read" || return 1
  grep -q '^No error detected' "$1/check" && echo "checked as it was, read, written and checked again" ||
    echo "read, repaired, read the same, written and checked; before: $(told "$1/check")"
}

# The kinds of things that the tool found, with how many of each.
told() {
  grep -iE 'not empty|differ|invalid|valid after|overlap|used by|unmapped but|mapped to' "$1" | sed 's/[0-9][0-9]*/N/g; s/^ *//' |
    sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s%dx%s", (NR > 1 ? "; " : ""), n, $0 }'
}

# What is not dm-zoned's: the tool and the target refuse it, and change nothing.
refused() {
  # shellcheck disable=SC2086
  lay "$1" 2>/tmp/log && ! { dmzadm --check $devices >"$1/check" 2>&1 && grep -q '^No error detected' "$1/check"; } ||
    { echo "dmzadm --check takes it"; return 1; }
  # shellcheck disable=SC2086
  ! dmzadm --start $devices >"$1/start" 2>&1 || { echo "dmzadm --start takes it"; return 1; }
  # The target without the tool, by the table that an image of this size was started with.
  [ -s /tmp/table ] || { echo "no table of a volume that was started"; return 1; }
  ! dmsetup create t </tmp/table >"$1/target" 2>&1 || { echo "the target takes it"; return 1; }
  unchanged "$1" || return 1
  echo "refused by dmzadm --check, --start and the target, unchanged: $(grep -o 'Invalid meta version.*' /tmp/kmsg | tail -n 1)"
}

prepare_dmz || exit 1
for kind in opened returned raw map; do
  for folder in "$kind"-[0-9]*; do
    [ -d "$folder" ] || continue
    mkdir -p "$folder/back"
    case $kind in
      opened | returned) step=accepted ;;
      raw) step=raw ;;
      map) step=refused ;;
    esac
    said=$($step "$folder") || { echo "image $folder failed: $said"; cat /tmp/log; exit 1; }
    echo "image $folder: $said"
  done
done
