#!/bin/sh
# Compares the NBD server with nbdkit's memory plugin: 4 KiB random reads and writes at queue depth
# 32 through fio's nbd engine, both over a Unix socket, taking turns so that the load of the machine
# hits both alike. Prints IOPS of every round and the ratio of the medians.
#
# usage: scripts/bench-nbd.sh [ROUNDS [SECONDS_PER_RUN]]
set -eu

rounds=${1:-5}
seconds=${2:-4}
bytes=1073741824

for program in nbdkit fio cargo; do
    if ! command -v "$program" >/dev/null; then
        echo "bench-nbd: $program is missing; install nbdkit and fio" >&2
        exit 2
    fi
done

cd "$(dirname "$0")/.."
cargo build --quiet --release -p onefold-serve --example memory
ours=${CARGO_TARGET_DIR:-target}/release/examples/memory

dir=$(mktemp -d)
pids=
cleanup() {
    # shellcheck disable=SC2086 # one word per process
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap cleanup EXIT

"$ours" "unix:$dir/onefold.sock" "$bytes" &
pids="$pids $!"
nbdkit --foreground --unix "$dir/nbdkit.sock" memory "$bytes" &
pids="$pids $!"
for server in onefold nbdkit; do
    tries=0
    until [ -S "$dir/$server.sock" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "bench-nbd: $server did not start" >&2; exit 1; }
        sleep 0.1
    done
done

run() { # server, fio job options; fills the terse report of one job
    server=$1
    shift
    fio --name=bench --ioengine=nbd --uri="nbd+unix:///?socket=$dir/$server.sock" --bs=4k \
        --iodepth=32 --size=1g --output-format=terse "$@" | tail -n 1
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# Every page is written first: reads of holes would be cheaper.
for server in onefold nbdkit; do
    run "$server" --rw=write --bs=1m >/dev/null
done

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
    "load $(cut -d' ' -f1 /proc/loadavg)"
for rw in randread randwrite; do
    # Fields of the terse report, version 3: read IOPS 8, write IOPS 49.
    field=8
    [ "$rw" = randread ] || field=49
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for server in onefold nbdkit; do
            run "$server" --rw="$rw" --runtime="$seconds" --time_based |
                cut -d';' -f"$field" >>"$dir/$rw.$server"
        done
        echo "$rw round $round: onefold $(tail -n 1 "$dir/$rw.onefold")" \
            "nbdkit $(tail -n 1 "$dir/$rw.nbdkit") IOPS"
    done
    a=$(median "$dir/$rw.onefold")
    b=$(median "$dir/$rw.nbdkit")
    awk -v rw="$rw" -v a="$a" -v b="$b" 'BEGIN {
        printf "%s median: onefold %d, nbdkit %d IOPS, ratio %.2f\n", rw, a, b, a / b }'
done
