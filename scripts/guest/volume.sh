# Runs in the guest: a volume of mode log on a zoned namespace and on null_blk with zones, served over NBD to the kernel, with
# ext4 on it.
export PATH=$PATH:/share

step() {
  echo "   $*"
  "$@" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
}

# use DEVICE: a volume on it, all its life.
use() {
  local device=$1 server
  echo "volume on $device ($(cat "/sys/block/${device##*/}/queue/zoned")," \
    "$(cat "/sys/block/${device##*/}/queue/nr_zones" 2>/dev/null) zones)"
  step onefold volume create "$device" --op 0.4 --force
  onefold volume serve "$device" --nbd unix:/tmp/nbd >/tmp/served 2>&1 &
  server=$!
  for _ in $(seq 60); do
    [ ! -S /tmp/nbd ] && kill -0 $server 2>/dev/null || break
    sleep 1
  done
  [ -S /tmp/nbd ] || { cat /tmp/served; exit 1; }
  step /bin/nbd-client -unix /tmp/nbd /dev/nbd0 -block-size 4096
  step /bin/mke2fs -q -t ext4 /dev/nbd0
  step mount -t ext4 /dev/nbd0 /mnt
  step fio --name=t --directory=/mnt --size=12m --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=512 \
    --verify=crc32c --io_size=24m
  step umount /mnt
  step /bin/e2fsck -fn /dev/nbd0
  step /bin/nbd-client -d /dev/nbd0
  kill -TERM $server
  wait $server || { cat /tmp/served; exit 1; }
  step onefold volume check "$device"
}

modprobe -a ext4 crc32c_generic nbd null_blk || exit 1
echo mq-deadline >/sys/block/nvme0n1/queue/scheduler
use /dev/nvme0n1
