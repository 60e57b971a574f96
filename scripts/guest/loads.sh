# Runs in the guest: F2FS on /dev/vda, a served SSD of the host. `prepare LOAD` makes it and what is there before the load, `load LOAD`
# runs the load (file-system-loads.sh).
mount=/mnt
. ./file-system-loads.sh
modprobe -a crc32_generic f2fs || exit 1

# Below 16 GiB, F2FS overwrites in place, discards single blocks, and takes the first free segment. The papers' drives are larger: these
# are its defaults there.
mount_f2fs() {
  local sys=/sys/fs/f2fs/vda
  mount -t f2fs /dev/vda /mnt && mount -o remount,alloc_mode=default /mnt &&
    echo 16 > $sys/ipu_policy && echo 16 > $sys/discard_granularity
}

[ "$1" = load ] || /bin/mkfs.f2fs -q -f /dev/vda || exit 1
mount_f2fs && "$1" "$2" && umount /mnt
