# Runs in the guest: ext4 and fio on the kernel target, the rows of zoned.md, section 9. Arguments: seconds per row, and rows.
# One line per row: name, MiB that fio wrote, and what `since_mark` tells.
. ./dmz.sh
seconds=$1
shift

row() {
  local name=$1 mode=$2 distribution=$3 size=$4 prefill=$5 user=0
  new_dmz || exit 1
  /bin/mke2fs -q -t ext4 -J size=64 -E lazy_itable_init=0 /dev/mapper/t || exit 1
  mount -t ext4 -o "data=$mode" /dev/mapper/t /mnt || exit 1
  mark
  if [ "$prefill" = yes ]; then
    user=$(load --rw=write --bs=1m --size="$size" --end_fsync=1)
  fi
  user=$((user + $(load --rw=randwrite --bs=4k --iodepth=32 --size="$size" --random_distribution="$distribution" \
    --norandommap --time_based --runtime="$seconds")))
  umount /mnt
  echo "$name $((user / 1024)).$((user % 1024 * 10 / 1024)) $(since_mark)"
  stop_dmz || exit 1
}

# KiB written.
load() {
  fio --name=t --filename=/mnt/f --ioengine=libaio --direct=1 --randseed=1 --allow_mounted_write=1 --output-format=terse "$@" \
    2>/tmp/fio | awk -F';' '{ print $47 }'
}

modprobe ext4 && prepare_dmz || exit 1
for wanted in "$@"; do
  case $wanted in
    1) row 1 ordered random 2g no ;;
    2) row 2 journal random 2g no ;;
    3) row 3 ordered zipf:1.2 2g no ;;
    4) row 4 ordered random 640m yes ;;
    5) row 5 journal random 640m yes ;;
  esac
done
