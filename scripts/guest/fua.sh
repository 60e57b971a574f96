# Runs in the guest, twice in one QEMU, because its zoned device forgets write pointers when it ends: is a write with FUA durable
# in the kernel target while the map entry it needs is dirty? A file's chunk is reclaimed to a sequential zone; overwriting a
# block of the file directly with O_DSYNC is one write with FUA then, to a new buffer zone; and the guest is reset at once.
. ./dmz.sh

flushes() { awk '$3 == "vda" { v = $19 } $3 == "nvme0n1" { n = $19 } END { print v, n }' /proc/diskstats; }

begin() {
  modprobe ext4 && prepare_dmz && new_dmz && /bin/mke2fs -q -t ext4 -J size=64 /dev/mapper/t && mount -t ext4 /dev/mapper/t /mnt || exit 1
  tr '\0' A </dev/zero | head -c 65536 >/mnt/file
  sync
  sleep 15 # idle, so that everything is reclaimed when somebody asks
  dmsetup message t 0 reclaim
  sleep 3
  [ "$(dmsetup status t | awk '{ print $6 }')" = 14/14 ] || { echo "not all of the cache was reclaimed"; exit 1; }
  before=$(flushes)
  fio --name=t --filename=/mnt/file --rw=write --bs=4k --size=4k --ioengine=psync --direct=1 --sync=dsync --buffer_pattern=0x42 \
    --allow_file_create=0 >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  after=$(flushes)
  echo "$(grep -c ' move ' /tmp/kmsg) reclaims; flushes of both devices: $before before the write, $after after it" >facts
  sync -f facts
  echo b >/proc/sysrq-trigger
  sleep 60
}

if [ -f facts ]; then
  modprobe ext4 && prepare_dmz && start_dmz && mount -t ext4 /dev/mapper/t /mnt || exit 1
  cat facts
  case $(head -c 1 /mnt/file) in
    A) echo "the write with FUA was answered and is lost" ;;
    B) echo "the write with FUA was answered and is there" ;;
    *) echo "the block holds something else" ; exit 1 ;;
  esac
else
  begin
fi
