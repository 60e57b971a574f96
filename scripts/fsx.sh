#!/usr/bin/env bash
# Random operations of fsx on a file of a real file system that lies on a served volume, while the volume is
# trimmed, takes and loses snapshots, and grows. Rounds of a minute; every other one ends with SIGKILL for the
# server, the others with SIGTERM, and after each `volume check --data` and the file system's own check have
# to find nothing. The time is shared by the file systems. Needs root, /dev/fuse and loop devices, and the
# network once: fsx is installed from its package into the target directory.
#
#   scripts/fsx.sh [SECONDS] [ext4|xfs|btrfs]...      3600 s, all three
set -uo pipefail
cd "$(dirname "$0")/.."

FSX_VERSION=0.3.2
# Seconds of a round.
ROUND=${FSX_ROUND:-60}
seconds=3600
case ${1:-} in
  -h | --help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
  [0-9]*) seconds=$1 && shift ;;
esac
case $seconds in *[!0-9]*) echo "fsx: seconds are $seconds, expected a whole number" >&2; exit 2 ;; esac
[ $# -gt 0 ] || set -- ext4 xfs btrfs

. scripts/served.sh
noun=volume serve_options=()
missing=$(missing_for_served fstrim)
if [ -n "$missing" ]; then
  echo "skipped: fsx (missing $missing)"
  exit 0
fi
target=${CARGO_TARGET_DIR:-$PWD/target}
fsx=$target/fsx/bin/fsx
if [ ! -x "$fsx" ]; then
  cargo install fsx --version "$FSX_VERSION" --locked --quiet --root "$target/fsx" || {
    echo "skipped: fsx (its package cannot be installed)"
    exit 0
  }
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=$target/release/onefold
fi

folder=$(mktemp --directory)
image=$folder/disk.img fuse=$folder/fuse mount=$folder/mount
mkdir "$fuse" "$mount" "$folder/artifacts"
trap 'tear_down; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
cat > "$folder/fsx.toml" <<'TOML'
flen = 16777216
[opsize]
max = 262144
TOML

fail() {
  echo "fsx: $*" >&2
  [ ! -s "$folder/log" ] || tail -n 20 "$folder/log" >&2
  exit 1
}
# must WHAT COMMAND..: shows what the command said if it fails.
must() {
  local what=$1
  shift
  "$@" > "$folder/output" 2>&1 || { tail -n 20 "$folder/output" >&2; fail "$what: $*"; }
}
# Mounts it as large as the volume is now. Only ext4 may need more rights to grow while it is mounted.
mount_grown() {
  if [ "$1" = ext4 ]; then e2fsck -f -p "$loop" && resize2fs "$loop" || return 1; fi
  mount_fs || return 1
  case $1 in
    xfs) xfs_growfs "$mount" ;;
    btrfs) btrfs filesystem resize max "$mount" ;;
  esac
}
volume() { "$onefold" volume "$@"; }

# Seed after seed until the time is up; fsx ends with an error where a byte is not what it was.
run_fsx() {
  local until=$1 seed=$2
  while [ "$SECONDS" -lt "$until" ]; do
    "$fsx" -q -f "$folder/fsx.toml" -P "$folder/artifacts" -N 2000 -S "$seed" "$mount/file" \
      > "$folder/fsx.log" 2>&1 || return 1
    rm -f "$mount/file"
    operations=$((operations + 2000))
    seed=$((seed + 1))
    fstrim "$mount" || return 1
    echo "$operations" > "$folder/operations"
  done
}
# What an administrator does meanwhile.
administrate() {
  local until=$1
  while [ "$SECONDS" -lt "$until" ]; do
    sleep 5
    volume snapshot create "$image" "during" || return 1
    sleep 5
    volume snapshot delete "$image" "during" || return 1
  done
}

round() {
  local fs=$1 number=$2 until=$((SECONDS + ROUND))
  # A killed administrator's snapshot may be left.
  volume snapshot delete "$image" during > /dev/null 2>&1
  must "resize of the volume" volume resize "$image" --size $((number < 32 ? 512 + number * 4 : 640))MiB
  must serve serve
  must "loop device" attach
  if [ "$number" = 0 ]; then must mkfs make_fs "$fs"; fi
  must "mount and grow" mount_grown "$fs"
  operations=$(cat "$folder/operations")
  administrate "$until" > "$folder/administrate.log" 2>&1 &
  local administrator=$!
  run_fsx "$until" $((seed + number * 1000)) || { tail -n 30 "$folder/fsx.log" >&2; fail "a round of fsx on $fs, seed $seed"; }
  wait "$administrator" || { cat "$folder/administrate.log" >&2; fail "a snapshot beside fsx on $fs"; }
  if [ $((number % 2)) = 0 ]; then
    "$fsx" -q -f "$folder/fsx.toml" -P "$folder/artifacts" -S "$number" "$mount/file" > "$folder/fsx.log" 2>&1 &
    local load=$!
    sleep 2
    power_off
    wait "$load"
    let_go
  else
    must umount umount "$mount"
    must detach detach
    must SIGTERM stop
  fi
  must "check of the volume" volume check "$image" --data
  must "serve after the round" serve
  must "loop device after the round" attach
  must "mount after the round" mount_fs
  must "umount after the round" umount "$mount"
  must "check of $fs" check_fs "$fs"
  must "detach after the round" detach
  must "SIGTERM after the round" stop
}

seed=${FSX_SEED:-$RANDOM}
for fs in "$@"; do
  case $fs in ext4 | xfs | btrfs) ;; *) echo "fsx: unknown file system $fs" >&2; exit 2 ;; esac
  command -v "mkfs.$fs" > /dev/null || { echo "skipped: $fs (mkfs.$fs is missing)"; continue; }
  grep -qw "$fs" /proc/filesystems || modprobe -q "$fs" 2> /dev/null \
    || { echo "skipped: $fs (not in this kernel)"; continue; }
  rm -f "$image" && echo 0 > "$folder/operations"
  # Room for all of it twice: btrfs writes every block anew, and a snapshot keeps the old ones.
  must create volume create "$image" --size 512MiB --backing-size 1536MiB
  end=$((SECONDS + seconds / $#)) rounds=0
  while [ "$rounds" = 0 ] || [ "$SECONDS" -lt "$end" ]; do
    round "$fs" "$rounds"
    rounds=$((rounds + 1))
  done
  echo "fsx ok ($fs): $(cat "$folder/operations") operations in $rounds rounds, seed $seed"
done
