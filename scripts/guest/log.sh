# Runs in the guest: ext4 on the kernel's dm-log-writes, whose log is on /dev/vda, on a served SSD, which keeps a tape. Both are about
# the same requests. Files are synchronised, and each is marked then; of another one nothing is.
export PATH=$PATH:/share

. ./served.sh
modprobe -a ext4 crc32c_generic nbd dm-log-writes || exit 1
step onefold ssd create /tmp/disk.img --preset tlc --size 64MiB
serve ssd serve /tmp/disk.img --latency none --tape /tmp/tape
# Neighbours would be one request below and are several above.
echo 2 >/sys/block/nbd0/queue/nomerges
step dmsetup create log --table "0 $(blockdev --getsz /dev/nbd0) log-writes /dev/nbd0 /dev/vda"
step /bin/mke2fs -q -t ext4 -b 4096 /dev/mapper/log
step dmsetup message log 0 mark made
step mount -t ext4 /dev/mapper/log /mnt
for n in 1 2 3 4 5 6; do
  seq $n $((n + 3000)) >/mnt/f$n
  echo loose >/mnt/loose$n
  sync /mnt/f$n
  sync /mnt
  step dmsetup message log 0 mark file-$n
done
step umount /mnt
step dmsetup remove log
stop
cp -r /tmp/tape /share/tape
