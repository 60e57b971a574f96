#!/bin/sh
# Speed of a volume on a real file, in turns with fio on the same file system: 4 KiB random writes through the driver in
# one process and over NBD, against fio's sequential writes of 1 MiB (O_DIRECT, io_uring); random reads with the volume
# against the same file without it. Prints medians, ratios and CPU use. Says where the volume loses, too.
#
# usage: scripts/bench-volume.sh [DIRECTORY [ROUNDS [SECONDS_PER_RUN]]]    (needs fio with nbd and 5 GiB)
set -eu

cd "$(dirname "$0")/.."
for program in fio cargo python3; do
    if ! command -v "$program" >/dev/null; then
        echo "bench-volume: $program is missing; make setup installs it" >&2
        exit 2
    fi
done
cargo build --quiet --release --locked -p onefold-device --example volume
cargo build --quiet --release --locked -p onefold
exec python3 scripts/bench_volume.py "${CARGO_TARGET_DIR:-target}/release" "$@"
