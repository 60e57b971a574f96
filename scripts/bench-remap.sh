#!/bin/sh
# Measures remaps of a served device (`onefold ssd serve --latency none`, the default log of 2 MiB) over
# NBD: writes 1 GiB, clones it twice and makes a snapshot of it. Prints how long each command took,
# how long writes waited for the snapshot, and the pages that were programmed meanwhile; first with
# superblocks over all dies, where a run of pages is one entry of the log per superblock, then with
# superblocks of one die, where each page is one. The image lies in TMPDIR and takes up to 6 GiB.
#
# usage: scripts/bench-remap.sh
set -eu

for program in fio python3 cargo; do
    if ! command -v "$program" >/dev/null; then
        echo "bench-remap: $program is missing; install fio and python3 (make setup)" >&2
        exit 2
    fi
done

cd "$(dirname "$0")/.."
cargo build --quiet --release --locked -p onefold
onefold=${CARGO_TARGET_DIR:-target}/release/onefold

dir=$(mktemp -d)
pid=
stop() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    wait
    pid=
}
trap 'stop; rm -rf "$dir"' EXIT

# Fields of a JSON document on standard input: $1 is an expression over it, named `it`.
field() { python3 -c "import json, sys; it = json.load(sys.stdin); print($1)"; }

programs() {
    "$onefold" ssd info "$dir/disk.img" --format json |
        field 'sum(it["device"]["flash"]["program_pages"].values())'
}

# What a command took, its pages copied and the pages programmed: label, command.
measure() {
    label=$1
    shift
    before=$(programs)
    "$onefold" ssd "$@" --format json >"$dir/reply"
    programmed=$(($(programs) - before))
    case $1 in
    clone) more='", %d pages copied" % it["ranges"][0]["copied_pages"]' ;;
    *) more='", writes waited %.1f ms" % it["stall_ms"]' ;;
    esac
    echo "$label: $(field "'%.1f ms' % it['wall_ms'] + $more" <"$dir/reply"), $programmed programmed"
}

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
    "load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F), commit $(git rev-parse --short HEAD)"
for superblock in device die; do
    "$onefold" ssd create "$dir/disk.img" --size 3GiB --set ftl.remap=lh --quiet \
        --set capacity.snapshots=1GiB --set "geometry.superblock=$superblock" >/dev/null
    "$onefold" ssd serve "$dir/disk.img" --nbd "unix:$dir/nbd" --latency none --quiet &
    pid=$!
    tries=0
    until [ -S "$dir/nbd" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "bench-remap: the server did not start" >&2; exit 1; }
        sleep 0.1
    done
    fio --name=fill --ioengine=nbd --uri="nbd+unix:///?socket=$dir/nbd" --rw=write --bs=1m --size=1g \
        --end_fsync=1 --output="$dir/fio"
    for target in 1GiB 2GiB; do
        measure "$superblock: clone of 1 GiB to $target" \
            clone "$dir/nbd" --src 0 --dst "$target" --len 1GiB
    done
    measure "$superblock: snapshot of 1 GiB" \
        snapshot create "$dir/disk.img" one --range 0:1GiB
    stop
    rm -f "$dir/disk.img"
done
