#!/usr/bin/env bash
# Installs the Debian packages that the tests use, most of them those of the served device. Onefold itself
# builds with Rust only; without these packages the tests that need them are skipped and counted.
#
#   scripts/setup.sh           install what is missing (root, or sudo without a password prompt)
#   scripts/setup.sh --check   only say what is there; exit 1 if something is missing
set -euo pipefail

# package:what it is for
packages=(
  "nbdkit:NBD server that ours is compared with"
  "libnbd-bin:NBD clients nbdinfo and nbdcopy"
  "python3-libnbd:nbdsh, for requests that no good client sends"
  "qemu-utils:qemu-img and qemu-io"
  "qemu-block-extra:NBD and other drivers of qemu-img"
  "fio:load with verification, engine nbd"
  "e2fsprogs:ext4"
  "xfsprogs:XFS"
  "btrfs-progs:btrfs"
  "f2fs-tools:F2FS, for the journal detector"
  "fdisk:sfdisk, for partitions that the journal detector reads"
  "fuse3:mounting the device as a file"
  "sqlite3:the demo, and power cuts of a known program"
  "libxml2-utils:xmllint, for results as JUnit"
  "zstd:looking into compressed traces"
  "valgrind:instruction counts of the buffer policies"
)

usage() { sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; }

check_only=false
case "${1:-}" in
  "") ;;
  --check) check_only=true ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; install by hand: ${packages[*]%%:*}" >&2
  exit 1
fi

missing=()
for entry in "${packages[@]}"; do
  name=${entry%%:*}
  if installed "$name"; then
    printf '  present  %-18s %s\n' "$name" "${entry#*:}"
  else
    printf '  missing  %-18s %s\n' "$name" "${entry#*:}"
    missing+=("$name")
  fi
done
for file in /dev/fuse /dev/loop-control; do
  if [ -e "$file" ]; then
    printf '  present  %s\n' "$file"
  else
    printf '  missing  %s (the mount tests are skipped; no package can help)\n' "$file"
  fi
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: every package is installed"
  exit 0
fi
if $check_only; then
  echo "setup: ${#missing[@]} packages are missing; scripts/setup.sh installs them"
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo --non-interactive true 2>/dev/null; then
    echo "setup: neither root nor sudo without a password; run: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo --non-interactive)
fi

# Another apt may be at work on a machine that has just started: wait for it.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 --quiet --quiet)
echo "setup: apt-get update"
"${apt[@]}" update </dev/null
echo "setup: apt-get install ${missing[*]}"
"${apt[@]}" install --yes --no-install-recommends "${missing[@]}" </dev/null
for name in "${missing[@]}"; do
  installed "$name" || { echo "setup: $name is still missing" >&2; exit 1; }
done
echo "setup: done"
