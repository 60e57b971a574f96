#!/bin/sh
# Compares, over the same kind of Unix socket and taking turns: the emulated SSD in an image file
# (`onefold ssd serve --latency none`), our NBD server over plain memory (the front end alone), and
# nbdkit's plugins memory and file. 4 KiB random reads and writes at queue depth 32 through fio's nbd engine.
# Prints the median IOPS of each and the ratios to both plugins. Image and file lie in TMPDIR: with
# TMPDIR=/dev/shm they are in memory, on a disk their writes are the host's file system's, too.
#
# usage: scripts/bench-nbd.sh [ROUNDS [SECONDS_PER_RUN]]
set -eu

rounds=${1:-5}
seconds=${2:-4}
bytes=1073741824

for program in nbdkit fio cargo; do
    if ! command -v "$program" >/dev/null; then
        echo "bench-nbd: $program is missing; install nbdkit and fio (make setup)" >&2
        exit 2
    fi
done

cd "$(dirname "$0")/.."
cargo build --quiet --release --locked -p onefold-serve --example memory
cargo build --quiet --release --locked -p onefold
target=${CARGO_TARGET_DIR:-target}/release

dir=$(mktemp -d)
pids=
cleanup() {
    # shellcheck disable=SC2086 # one word per process
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap cleanup EXIT

"$target/onefold" ssd create "$dir/disk.img" --preset tlc --size 2GiB --quiet
"$target/onefold" ssd serve "$dir/disk.img" --nbd "unix:$dir/ssd.sock" --latency none --quiet &
pids="$pids $!"
"$target/examples/memory" "unix:$dir/memory.sock" "$bytes" &
pids="$pids $!"
nbdkit --foreground --unix "$dir/nbdkit.sock" memory "$bytes" &
pids="$pids $!"
truncate --size "$bytes" "$dir/file.img"
nbdkit --foreground --unix "$dir/file.sock" file "$dir/file.img" &
pids="$pids $!"
servers="ssd memory nbdkit file"
for server in $servers; do
    tries=0
    until [ -S "$dir/$server.sock" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "bench-nbd: $server did not start" >&2; exit 1; }
        sleep 0.1
    done
done

run() { # server, fio job options; prints the terse report of one job
    server=$1
    shift
    fio --name=bench --ioengine=nbd --uri="nbd+unix:///?socket=$dir/$server.sock" --bs=4k \
        --iodepth=32 --size=1g --output-format=terse "$@" | tail -n 1
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# Every page is written first (reads of holes would be cheaper), and then again at random until the
# emulated SSD collects garbage.
for server in $servers; do
    run "$server" --rw=write --bs=1m >/dev/null
    run "$server" --rw=randwrite --bs=64k --io_size=3g >/dev/null
done

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
    "load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F), commit $(git rev-parse --short HEAD)"
for rw in randread randwrite; do
    # Fields of the terse report, version 3: read IOPS 8, write IOPS 49.
    field=8
    [ "$rw" = randread ] || field=49
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for server in $servers; do
            report=$(run "$server" --rw="$rw" --time_based --runtime="$seconds")
            echo "$report" | cut -d';' -f"$field" >>"$dir/$rw.$server"
        done
    done
    peers="$(median "$dir/$rw.nbdkit") $(median "$dir/$rw.file")"
    for server in $servers; do
        echo "$(median "$dir/$rw.$server") $peers" | awk -v what="$rw $server" \
            '{ printf "%s %d IOPS, %.2f x nbdkit memory, %.2f x nbdkit file\n", what, $1, $1 / $2, $1 / $3 }'
    done
done
