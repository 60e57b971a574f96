# For scripts whose guest (scripts/guest.sh) has a served SSD as /dev/vda. Sourced, after served.sh. The caller sets what that needs, and
# socket and share, the folder that the guest sees.
# shellcheck shell=bash

# What is missing here, in one line.
missing_for_guest() {
  local program said
  for program in qemu-system-x86_64 zstd; do
    command -v "$program" > /dev/null || { echo "$program"; return; }
  done
  said=$(scripts/guest/image.sh) || echo "$said"
}
# in_guest COMMAND, while the SSD is served. Requests reach the SSD as the guest's block layer makes them.
in_guest() {
  echo "$1" > "$share/run.sh"
  serve_nbd || return 1
  scripts/guest/boot.sh "$share" 3600 -drive "if=none,id=n,file=nbd+unix:///?socket=$socket,format=raw,cache=none,discard=unmap" \
    -device virtio-blk-pci,drive=n,request-merging=off || { cat "$share/output" >&2; return 1; }
  stop
}
serve_nbd() {
  "$onefold" ssd serve "$image" --nbd "unix:$socket" "${serve_options[@]}" > "$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    [ ! -S "$socket" ] || return 0
    kill -0 "$server" 2> /dev/null || return 1
    sleep 0.1
  done
  return 1
}
