# Runs in the guest: F2FS on /dev/vda, a served SSD of the host. One step of it, so that the drive may be served anew in between:
# age (make it, fill it to so many percent, overwrite), clean (all that can be cleaned) or check (fsck, and every file is the same).
modprobe -a crc32_generic f2fs || exit 1
ulimit -n 4096
sys=/sys/fs/f2fs/vda

# Only what is asked for cleans.
mounted() {
  mount -t f2fs -o mode=lfs,background_gc=on,nodiscard /dev/vda /mnt || exit 1
  echo 100000 >$sys/gc_min_sleep_time
  echo 300000 >$sys/gc_max_sleep_time
  echo 300000 >$sys/gc_no_gc_sleep_time
}

state() {
  echo "$1: $(cat $sys/free_segments) segments free, $(cat $sys/dirty_segments) dirty, $(df -k /mnt | awk 'END { print $5 }') full"
}

# KiB that are lacking until the file system is so many percent full.
kib_up_to() { df -k /mnt | awk -v percent="$1" 'END { print int(($3 + $4) * percent / 100 - $3) }'; }

# Files of 128 to 320 KiB, written by fio: all of them in order, or 4 to 64 KiB of random ones.
files() {
  fio --name=w --directory=/mnt --ioengine=psync --bs=64k --nrfiles="$nrfiles" --filesize=128k-320k --refill_buffers --fallocate=none \
    --end_fsync=1 "$@" >/tmp/log 2>&1 || { tail -n 2 /tmp/log; exit 1; }
  sync
}

sums() { (cd /mnt && find . -type f -exec md5sum {} + | sort); }

age() {
  /bin/mkfs.f2fs -q -f /dev/vda || exit 1
  mounted
  nrfiles=$(($(kib_up_to 80) / 224))
  files --rw=write --randseed=1
  # The rest is one file that nobody overwrites.
  dd if=/dev/urandom of=/mnt/rest bs=4k count=$(($(kib_up_to "$1") / 4)) conv=fsync 2>/tmp/log || { cat /tmp/log; exit 1; }
  state filled
  files --rw=randwrite --io_size="$2" --bsrange=4k-64k --file_service_type=random --openfiles=64 --norandommap \
    --sync_file_range=write:64 --randseed=2
  state overwritten
  sums >sums
}

clean() {
  mounted
  state before
  echo 1 >$sys/gc_urgent_sleep_time
  echo 1 >$sys/gc_urgent
  # Until the number of dirty segments has been the same for 10 s: those that are left have nothing to give.
  local same=0 before=-1 now
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
}

# fsck.f2fs does not open what the kernel opens by its older checkpoint, and the kernel writes the other one anew.
check() {
  mounted
  sums | cmp - sums || exit 1
  umount /mnt
  /bin/fsck.f2fs --dry-run /dev/vda >/tmp/fsck 2>&1 || { cat /tmp/fsck; exit 1; }
  ! grep -q '\[Fail\]\|ASSERT' /tmp/fsck || { cat /tmp/fsck; exit 1; }
  echo "$(wc -l <sums) files are the same"
}

"$@"
! grep -q ' /mnt ' /proc/mounts || umount /mnt
