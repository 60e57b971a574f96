# For scripts that put a file system on a served device, through FUSE and a loop device. Sourced.
# The caller sets onefold, folder, image, fuse and mount, and may set noun (ssd or volume) and
# serve_options (an array).

server='' loop=''
noun=ssd
serve_options=(--latency none)

# What of root, devices and programs (the arguments) is missing here, in one line.
missing_for_served() {
  local missing=()
  [ "$(id -u)" = 0 ] || missing+=(root)
  [ -c /dev/fuse ] || missing+=(/dev/fuse)
  [ -e /dev/loop-control ] || missing+=(/dev/loop-control)
  for program in losetup "$@"; do
    command -v "$program" > /dev/null || missing+=("$program")
  done
  echo "${missing[*]}"
}
# Ends the script well, or badly where ONEFOLD_REQUIRE names t1, if databases on ext4 cannot run here.
skip_databases_without() {
  local missing
  missing=$(missing_for_served "$@")
  [ -n "$missing" ] || python3 -c 'import sqlite3' 2> /dev/null || missing=sqlite3
  [ -n "$missing" ] || grep -qw ext4 /proc/filesystems || modprobe -q ext4 2> /dev/null || missing=ext4
  [ -n "$missing" ] || return 0
  echo "skipped: databases under power cuts (missing $missing)"
  case ",${ONEFOLD_REQUIRE:-}," in *,t1,*) exit 1 ;; esac
  exit 0
}
mounted() { grep -qs " $1 " /proc/mounts; }
serve() {
  "$onefold" "$noun" serve "$image" --fuse "$fuse" "${serve_options[@]}" > "$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    if mounted "$fuse" && [ -f "$fuse/disk" ]; then return 0; fi
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
  done
  cat "$folder/log" >&2
  return 1
}
# The loop device must lie on the served file, or the tests would run on the host's own disk. Arguments
# are options of losetup.
attach() {
  loop=$(losetup --find --show --direct-io=on "$@" "$fuse/disk") || return 1
  [ "$(losetup --noheadings --output DIO "$loop" | tr -d ' ')" = 1 ] || return 1
  [ "$(losetup --noheadings --output BACK-FILE "$loop")" = "$fuse/disk" ]
}
detach() {
  losetup --detach "$loop" || return 1
  # The loop device lets go of the file a moment later.
  for _ in $(seq 50); do
    losetup "$loop" > /dev/null 2>&1 || { loop=''; return 0; }
    sleep 0.1
  done
  return 1
}
# File systems: ext4, xfs, btrfs.
make_fs() {
  case $1 in
    ext4) mkfs.ext4 -q -F "$loop" ;;
    xfs) mkfs.xfs -q -f "$loop" ;;
    btrfs) make_btrfs ;;
  esac
}
# It looks at every mounted loop device and fails if the file below any of them does not answer. That is so for as long as a test
# that runs beside this one has killed its server and not yet cleaned up.
make_btrfs() {
  local attempt
  for attempt in {1..30}; do
    mkfs.btrfs -q -f "$loop" 2> "$folder/mkfs" && return
    grep -q 'cannot check mount status' "$folder/mkfs" || break
    sleep 1
  done
  cat "$folder/mkfs" >&2
  return 1
}
check_fs() {
  case $1 in
    ext4) e2fsck -f -n "$loop" ;;
    xfs) xfs_repair -n "$loop" ;;
    btrfs) btrfs check --readonly "$loop" ;;
  esac
}
# After a crash the journal of ext4 is replayed (1: corrected); afterwards nothing may be wrong.
replay() {
  e2fsck -p "$loop"
  [ $? -le 1 ] && e2fsck -f -n "$loop"
}
mount_fs() { mount "$@" "$loop" "$mount" && mounted "$mount"; }
# SIGTERM; what the server says is shown if it does not end well.
stop() {
  kill -TERM "$server" || return 1
  wait "$server"
  local code=$?
  server=''
  [ "$code" = 0 ] || { echo "exit code $code"; cat "$folder/log"; return 1; }
}
# SIGKILL for the server under a mounted file system.
power_off() {
  kill -KILL "$server"
  wait "$server" 2> /dev/null
  server=''
}
# Lets go of the file system, the loop device and the mount of a server that was killed.
let_go() {
  umount --lazy "$mount"
  losetup --detach "$loop"
  loop=''
  umount --lazy "$fuse"
  for _ in $(seq 100); do
    mounted "$fuse" || mounted "$mount" || return 0
    sleep 0.1
  done
  return 1
}
tear_down() {
  if mounted "$mount"; then umount "$mount" || umount --lazy "$mount"; fi
  if [ -n "$loop" ]; then detach || true; fi
  loop=''
  if [ -n "$server" ]; then
    kill -TERM "$server" 2> /dev/null
    wait "$server" 2> /dev/null
  fi
  server=''
  if mounted "$fuse"; then umount --lazy "$fuse" || true; fi
}
