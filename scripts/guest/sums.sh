# Runs in the guest: dm-zoned and its tool get the devices of a volume whose cache has checksums. They have to refuse them, and to
# change nothing. The same volume without checksums they take.
. ./dmz.sh
export PATH=$PATH:/share

step() {
  echo "   $*"
  "$@" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
}

# make OPTION...: a volume of ours on both devices.
make() {
  step onefold volume create /dev/nvme0n1 --zoned dmz --cache /dev/vda --force "$@"
  step onefold volume check /dev/nvme0n1 --cache /dev/vda
}

# What both devices hold.
content() {
  dd if=/dev/vda bs=1M iflag=direct 2>/dev/null | md5sum
  dd if=/dev/nvme0n1 bs=1M iflag=direct 2>/dev/null | md5sum
  /bin/blkzone report /dev/nvme0n1
}

refused() {
  echo "   refused? $*"
  ! "$@" >/tmp/log 2>&1 || { cat /tmp/log; echo "it is taken"; exit 1; }
  grep -iE 'invalid|no valid|fail' /tmp/log
}

# dmzadm --check may end well although it found something.
checked() {
  dmzadm --check "$@" && grep -q '^No error detected' /tmp/log
}

prepare_dmz || exit 1
make
# shellcheck disable=SC2086
{
  step checked $devices
  step dmzadm --start $devices
  dmsetup table "$(cat /sys/block/dm-0/dm/name)" >/tmp/table || exit 1
  step dmzadm --stop $devices
}

make --cache-checksums
content >/tmp/before
# shellcheck disable=SC2086
{
  refused checked $devices
  refused dmzadm --repair $devices
  refused dmzadm --start $devices
}
content | cmp - /tmp/before || exit 1

# The target without the tool. Where no root record is found, the kernel of Debian 12 reads through a null pointer when it wants to
# say so (blank devices do the same to it): dmsetup is killed, and nothing can be stopped after that. So it is the last step.
refused dmsetup create t /tmp/table
[ ! -e /sys/block/dm-0 ] && content | cmp - /tmp/before || { echo "not refused, or changed"; exit 1; }
said=$(grep -o 'Invalid meta magic.*' /tmp/kmsg | tail -n 1)
[ -n "$said" ] || { echo "the target did not say why"; exit 1; }
echo "refused by dmzadm --check, --repair, --start and the target, unchanged: $said"
