# Runs in the guest: F2FS on /dev/vda, a served SSD of the host that keeps a tape. Runs a load, cleans all, runs the load again
# (Wu 2022, section V-D). A read of the block at 4 KiB stands before cleaning and before the second run.
modprobe -a crc32_generic f2fs || exit 1
ulimit -n 4096
# Only what is asked for cleans.
/bin/mkfs.f2fs -q -f /dev/vda && mount -t f2fs -o mode=lfs,background_gc=on,nodiscard /dev/vda /mnt || exit 1
sys=/sys/fs/f2fs/vda
echo 100000 >$sys/gc_min_sleep_time
echo 300000 >$sys/gc_max_sleep_time
echo 300000 >$sys/gc_no_gc_sleep_time
state() { echo "$1: $(cat $sys/free_segments) segments free, $(cat $sys/dirty_segments) dirty, $(cat $sys/lifetime_write_kbytes) KiB written"; }
# Files of 128 to 320 KiB, written by fio: all of them in order, or 4 to 64 KiB of random ones.
files() {
  fio --name=w --directory=/mnt --ioengine=psync --bs=64k --nrfiles=900 --filesize=128k-320k --refill_buffers --fallocate=none --end_fsync=1 \
    "$@" >/tmp/log 2>&1 || { tail -n 2 /tmp/log; exit 1; }
  sync
}
load() {
  files --rw=randwrite --io_size=200m --bsrange=4k-64k --file_service_type=random --openfiles=64 --norandommap \
    --sync_file_range=write:64 --randseed="$1"
}
mark() { dd if=/dev/vda of=/dev/null bs=4096 skip=1 count=1 iflag=direct 2>/dev/null; }

files --rw=write --randseed=1
state filled
load 2
state run
mark
echo 3 >/proc/sys/vm/drop_caches
echo 1 >$sys/gc_urgent_sleep_time
echo 1 >$sys/gc_urgent
# Until the number of dirty segments has been the same for 10 s: those that are left have nothing to give.
same=0 before=-1
for _ in $(seq 240); do
  sleep 1
  now=$(cat $sys/dirty_segments)
  if [ "$now" = "$before" ]; then same=$((same + 1)); else same=0; fi
  before=$now
  [ $same -lt 10 ] || break
done
echo 0 >$sys/gc_urgent
sync
state cleaned
mark
load 3
state again
umount /mnt
