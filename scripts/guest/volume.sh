# Runs in the guest: a volume on a zoned block device, served over NBD to the kernel, with ext4 on it. The argument says which:
# log is a volume of mode log on a zoned namespace, dmz one of policy dmz on null_blk with conventional zones, which dm-zoned
# takes over then.
export PATH=$PATH:/share

. ./served.sh

# use DEVICE ARGUMENTS-OF-CREATE...: a volume on it, all its life.
use() {
  local device=$1
  shift
  echo "volume on $device ($(cat "/sys/block/${device##*/}/queue/zoned")," \
    "$(cat "/sys/block/${device##*/}/queue/nr_zones" 2>/dev/null) zones)"
  echo mq-deadline >"/sys/block/${device##*/}/queue/scheduler"
  step onefold volume create "$device" "$@" --force
  serve volume serve "$device"
  step /bin/mke2fs -q -t ext4 /dev/nbd0
  step mount -t ext4 /dev/nbd0 /mnt
  step fio --name=t --directory=/mnt --size=12m --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --fsync=512 \
    --verify=crc32c --io_size=24m
  sum=$(md5sum </mnt/t.0.0)
  step umount /mnt
  step /bin/e2fsck -fn /dev/nbd0
  stop
  tail -n 1 /tmp/served
  step onefold volume check "$device" --data
}

# The kernel's tool and target take a volume over, find the file, and leave what we take back.
hand_over() {
  local device=$1
  step dmzadm --check "$device"
  grep -q '^No error detected' /tmp/log || { cat /tmp/log; exit 1; }
  step dmzadm --start "$device"
  step mount -t ext4 /dev/dm-0 /mnt
  [ "$(md5sum </mnt/t.0.0)" = "$sum" ] || { echo "dm-zoned reads another file"; exit 1; }
  step fio --name=u --directory=/mnt --size=12m --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --verify=crc32c
  step umount /mnt
  step /bin/e2fsck -fn /dev/dm-0
  step dmzadm --stop "$device"
  step onefold volume check "$device" --data
}

modprobe -a ext4 crc32c_generic nbd || exit 1
case $1 in
  log) use /dev/nvme0n1 --op 0.4 ;;
  dmz)
    # 14 zones of cache, which the load fills. Not with bs=4096: null_blk then spoils what memory that begins within a page holds.
    modprobe null_blk nr_devices=1 zoned=1 gb=1 zone_size=4 zone_nr_conv=16 memory_backed=1 &&
      modprobe dm-zoned || exit 1
    use /dev/nullb0 --zoned dmz
    hand_over /dev/nullb0
    ;;
esac
