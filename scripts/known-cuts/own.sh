# Onefold itself as the program: a served volume whose files lie on the disk that is cut, and ext4 on it, in which files are
# synchronised and announced. With dmz there is a zoned drive and a cache device besides.
#
#   own.sh prepare|run|check volume|dmz
#   own.sh tape volume|dmz TAPE     in an empty folder: a tape of what the file system asks of the served volume
#
# Check: exit code 1: an announced file is gone or not as written; 2: the volume or its file system is damaged.
onefold=${ONEFOLD:-onefold} image=$PWD/own.img work=$(mktemp --directory) server='' loop=''
options=''
[ "$2" = volume ] || options="--cache $PWD/cache.img"
mkdir "$work/fuse" "$work/mnt"

stop() {
  ! mountpoint -q "$work/mnt" || umount "$work/mnt"
  [ -z "$loop" ] || losetup --detach "$loop"
  # The kernel lets go of the loop device a moment later.
  [ -z "$server" ] || { sleep 0.1; kill -TERM "$server"; wait "$server"; }
  loop='' server=''
}
finish() {
  code=$?
  stop
  rm -rf "$work"
  exit $code
}
trap finish EXIT
damaged() { echo "damaged: $1: $(tail -n 1 "$work/log")"; exit 2; }

create() {
  if [ "$1" = volume ]; then
    "$onefold" volume create "$image" --size 96MiB --backing-size 160MiB
  else
    "$onefold" ssd create "$image" --preset zns-proto --size 1GiB &&
      "$onefold" volume create "$image" --zoned dmz --cache "$PWD/cache.img" --cache-size 256MiB
  fi
}
serve() {
  # shellcheck disable=SC2086
  "$onefold" volume serve "$image" $options --fuse "$work/fuse" "$@" > "$work/log" 2>&1 &
  server=$!
  until [ -s "$work/fuse/disk" ]; do kill -0 $server 2> /dev/null || damaged serve; sleep 0.02; done
  loop=$(losetup --find --show --direct-io=on "$work/fuse/disk") || exit 3
}

write_files() {
  mount "$loop" "$work/mnt" || exit 3
  for n in $(seq 12); do
    seq "$n" $((n + 3000)) > "$work/mnt/f$n"
    sync "$work/mnt/f$n" "$work/mnt"
    echo "file $n"
  done
}

case $1 in
  prepare | tape)
    create "$2" > "$work/log" 2>&1 || damaged create
    serve
    mkfs.ext4 -q "$loop"
    [ "$1" = tape ] || exit 0
    stop
    serve --tape "$3"
    write_files
    ;;
  run)
    serve
    write_files
    ;;
  check)
    # shellcheck disable=SC2086
    "$onefold" volume check "$image" $options --data > "$work/log" 2>&1 || damaged check
    serve
    mount "$loop" "$work/mnt" 2> "$work/log" || damaged mount
    for n in $(seq "$(grep -c '^file' "$ONEFOLD_STDOUT")"); do
      seq "$n" $((n + 3000)) | cmp -s - "$work/mnt/f$n" || { echo "file $n announced, not as written"; exit 1; }
    done
    umount "$work/mnt"
    e2fsck -f -n "$loop" > "$work/log" 2>&1 || damaged ext4
    ;;
esac
