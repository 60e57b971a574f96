#!/usr/bin/env bash
# Boots the guest and runs FOLDER/run.sh in it, with the folder as the guest's /share. What it prints is in FOLDER/output
# afterwards, and its exit code is that of this script; 124 if it took longer than SECONDS, 125 if the guest ended without one.
#
#   scripts/guest/boot.sh FOLDER SECONDS [QEMU-OPTION...]
#
# A folder with files `regular.img` and `zoned.img` gives the guest these as /dev/vda and as the zoned namespace /dev/nvme0n1
# with zones of ONEFOLD_GUEST_ZONE (64M), whose speed ONEFOLD_GUEST_REGULAR and ONEFOLD_GUEST_ZONED may limit (options of -drive
# that begin with a comma, such as ",throttling.iops-total=1000"). ONEFOLD_GUEST_ACCEL=kvm or tcg overrules what the processor seems to offer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 seconds=$2
shift 2
cache=$("$here/image.sh")

# /dev/kvm alone does not tell: without virtualisation by the processor it may want a kernel made for it.
accel=tcg,thread=multi
if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accel=kvm; fi
accel=${ONEFOLD_GUEST_ACCEL:-$accel}

devices=()
if [ -f "$folder/regular.img" ]; then
  # Unless told not to, QEMU makes one request of neighbours before it limits them.
  devices+=(-drive "if=none,id=c,file=$folder/regular.img,format=raw,cache=unsafe${ONEFOLD_GUEST_REGULAR:-}"
    -device virtio-blk-pci,drive=c,request-merging=off)
fi
if [ -f "$folder/zoned.img" ]; then
  zone=${ONEFOLD_GUEST_ZONE:-64M}
  zones=zoned=true,zoned.zone_size=$zone,zoned.zone_capacity=$zone,zoned.max_open=0,zoned.max_active=0
  devices+=(-drive "if=none,id=z,file=$folder/zoned.img,format=raw,cache=unsafe${ONEFOLD_GUEST_ZONED:-}" -device nvme,id=n0,serial=zoned
    -device "nvme-ns,drive=z,bus=n0,nsid=1,logical_block_size=4096,physical_block_size=4096,$zones")
fi
rm -f "$folder/exit" "$folder/output"
status=0
timeout --foreground "$seconds" qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 2048 -nodefaults -nographic -no-reboot \
  -serial "file:$folder/console" -kernel "$cache/vmlinuz" -initrd "$cache/initrd" \
  -append "console=ttyS0 quiet panic=-1 log_buf_len=64M" \
  -fsdev "local,id=share,path=$folder,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share \
  "${devices[@]}" "$@" </dev/null || status=$?
[ "$status" != 124 ] || exit 124
[ -f "$folder/exit" ] || { echo "guest: it ended too early (QEMU: $status); its console: $folder/console" >&2; exit 125; }
exit "$(cat "$folder/exit")"
