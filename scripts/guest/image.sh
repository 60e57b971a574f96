#!/usr/bin/env bash
# Makes the kernel and the initial file system of the guest from Debian packages, in a cache folder outside the repository, and
# prints that folder. Debian 12 gives the kernel, because the baseline was measured on it; Debian 13 gives the programs, because
# dmzadm is not in Debian 12. Packages come through apt with lists of its own and are only unpacked: nothing is installed, and no
# root is needed. What cannot be had is said in one line on stdout, with exit code 3.
#
#   scripts/guest/image.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/onefold-guest
programs="fio dmsetup dm-zoned-tools e2fsprogs f2fs-tools sqlite3 util-linux busybox-static nbd-client kmod"
modules="virtio_pci virtio_blk nvme null_blk dm-zoned dm-log-writes crc32c_generic crc32_generic ext4 f2fs nbd fuse loop 9p 9pnet_virtio"

exec 3>&1
lack() { echo "$1" >&3; exit 3; }

# Runs an apt tool on the lists of one Debian release, as if nothing were installed.
apt_of() {
  local release=$1; shift
  APT_CONFIG=$cache/$release/apt.conf "$@"
}

prepare_apt() {
  local release=$1 folder=$cache/$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg
  local base=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
  [ -r "$keys" ] || lack "the package debian-archive-keyring is missing"
  mkdir -p "$folder"/{state/lists/partial,cache/archives/partial}
  echo "deb [arch=amd64 signed-by=$keys] $base $release main" >"$folder/sources.list"
  cat >"$folder/apt.conf" <<CONF
Dir::State "$folder/state";
Dir::State::status "/dev/null";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "amd64";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "2";
Debug::NoLocking "true";
CONF
  apt_of "$release" apt-get -qq update >"$folder/log" 2>&1 && [ ! -s "$folder/log" ] \
    || lack "no package lists of Debian $release: $(tail -n 1 "$folder/log")"
}

fetch_kernel() {
  local package
  prepare_apt bookworm
  package=$(apt_of bookworm apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
  (cd "$cache" && apt_of bookworm apt-get -qq download "$package") || lack "no package $package"
  rm -rf "$cache/part"
  dpkg-deb -x "$cache"/"$package"_*.deb "$cache/part"
  mv "$cache/part" "$cache/kernel"
  rm "$cache"/"$package"_*.deb
}

fetch_programs() {
  prepare_apt trixie
  # shellcheck disable=SC2086
  apt_of trixie apt-get -qq install --yes --download-only --no-install-recommends $programs \
    >"$cache/trixie/log" 2>&1 || lack "no packages: $(tail -n 1 "$cache/trixie/log")"
  rm -rf "$cache/part"
  mkdir "$cache/part"
  for package in "$cache"/trixie/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -C "$cache/part" -x --keep-directory-symlink
  done
  rm -rf "$cache/unpacked"
  mv "$cache/part" "$cache/unpacked"
  rm "$cache"/trixie/cache/archives/*.deb
}

# Runs an unpacked program with its own libraries.
run_unpacked() {
  local libraries=$cache/unpacked/usr/lib/x86_64-linux-gnu
  "$cache/unpacked/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/ceph" "$@"
}

# `kmod` is depmod if it is called so.
depmod() {
  run_unpacked --argv0 depmod "$cache/unpacked/usr/bin/kmod" "$@"
}

# Copies a program and the libraries it is linked to.
add_program() {
  local root=$1 program=$2 library
  cp "$program" "$root/bin/"
  for library in $(run_unpacked --list "$program" | awk '$2 == "=>" { print $3 }'); do
    cp -n -L "$library" "$root/lib/x86_64-linux-gnu/"
  done
}

# Copies the modules and those they depend on, at their places, with the index that dmzadm looks into.
add_modules() {
  local root=$1 version=$2 all=$cache/kernel/lib/modules/$2 name
  depmod -b "$cache/kernel" "$version"
  for name in $modules; do
    grep -E "(^|/)${name//_/[-_]}\.ko:" "$all/modules.dep" | tr -d :
  done | tr ' ' '\n' | sort -u | while read -r name; do
    mkdir -p "$(dirname "$root/lib/modules/$version/$name")"
    cp "$all/$name" "$root/lib/modules/$version/$name"
  done
  touch "$root/lib/modules/$version"/modules.{order,builtin,builtin.modinfo}
  depmod -b "$root" "$version"
}

build() {
  local root=$cache/root version name
  rm -rf "$root"
  mkdir -p "$root"/{bin,lib/modules,lib/x86_64-linux-gnu,lib64,proc,sys,dev,tmp,mnt,share,etc}
  version=$(basename "$cache"/kernel/lib/modules/*)
  cp "$cache/unpacked/usr/bin/busybox" "$root/bin/"
  cp -L "$cache/unpacked/usr/lib64/ld-linux-x86-64.so.2" "$root/lib64/"
  for name in fio dmsetup dmzadm mke2fs e2fsck debugfs blkzone blkdiscard nbd-client mkfs.f2fs fsck.f2fs sqlite3; do
    add_program "$root" "$(find "$cache"/unpacked/usr/{bin,sbin} -type f -name "$name")"
  done
  add_modules "$root" "$version"
  cp "$here/init" "$root/init"
  cp "$cache/kernel/boot/vmlinuz-$version" "$cache/vmlinuz"
  # Not compressed: an emulated processor copies faster than it unpacks.
  (cd "$root" && find . | bin/busybox cpio -o -H newc 2>/dev/null) >"$cache/initrd.part"
  mv "$cache/initrd.part" "$cache/initrd"
}

for program in apt-get dpkg-deb tar; do
  command -v "$program" >/dev/null || lack "$program is missing"
done
mkdir -p "$cache"
# One at a time; what is there already is used as it is (delete the folder for newer packages).
exec 9>"$cache/lock"
flock 9
[ -d "$cache/kernel" ] || fetch_kernel >&2
# An older cache has not all of them.
[ -n "$(find "$cache/unpacked" -name sqlite3 -type f 2>/dev/null)" ] || fetch_programs >&2
if [ ! -f "$cache/initrd" ] || [ "$here/init" -nt "$cache/initrd" ] || [ "$0" -nt "$cache/initrd" ]; then
  build >&2
fi
echo "$cache"
