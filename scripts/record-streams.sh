#!/usr/bin/env bash
# Records what unmodified programs ask of a device of 1 GiB through ext4 and XFS, for studies/streams.toml: RocksDB
# (db_bench) and SQLite in WAL mode on ext4, fio with skewed writes on XFS. Requests as the file system made them, without
# discards, each file system about 80 % full. Needs root, a loop device, tracefs, db_bench, Python and fio. f2fs is a file server on
# F2FS (scripts/guest/fileserver.sh): the guest's kernel (scripts/guest.sh) on a served SSD, which records. Needs QEMU and zstd, too.
#
#   scripts/record-streams.sh FOLDER [rocksdb|sqlite|sqlite-skewed|fio|f2fs]...   all; FOLDER gets rec-streams-NAME.csv.zst, or .oft.zst
#
# RECORD_RAW=1 keeps the text of the kernel instead.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
out=$1 && shift
[ $# -gt 0 ] || set -- rocksdb sqlite sqlite-skewed fio f2fs
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "$0")/.."
onefold=${ONEFOLD:-${CARGO_TARGET_DIR:-target}/release/onefold}
. scripts/traced.sh
. scripts/served.sh
. scripts/served-guest.sh
folder=$work image=$work/ssd.img fuse=$work/fuse mount=$work/mnt socket=$work/nbd share=$work/share
trap 'tear_down; finish' EXIT

# A load, and all that it wrote.
synced() { "$@" && sync -f "$work/mnt"; }

# Files that nobody touches fill up the file system.
cold() { head -c "$1" /dev/urandom >"$work/mnt/cold"; }

# 240 MB of values, overwritten at random, and what compaction writes.
rocksdb() {
  db_bench --db="$work/mnt/db" --num=240000 --value_size=1000 --key_size=16 --compression_type=none --seed=1 \
    --write_buffer_size=16777216 --target_file_size_base=16777216 --max_bytes_for_level_base=67108864 \
    --max_bytes_for_level_multiplier=4 --level_compaction_dynamic_level_bytes=true --threads=1 \
    --bytes_per_sync=1048576 --wal_bytes_per_sync=1048576 --disable_auto_compactions=0 --histogram=0 "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; return 1; }
}

# 150,000 rows of 3.9 KB in 600 MB; transactions of 20 random updates, of which the share $2 (0: none more) goes to a fifth of the rows.
sqlite() {
  python3 - "$work/mnt/db" "$1" "${2:-0}" <<'PY'
import random, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL"), db.execute("PRAGMA synchronous=NORMAL")
rng = random.Random(int(sys.argv[2] == "load"))
rows, skew = 150_000, float(sys.argv[3])
if sys.argv[2] == "load":
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB)")
    for row in range(rows):
        if row % 500 == 0:
            db.execute("BEGIN")
        db.execute("INSERT INTO t VALUES(?, ?)", (row, rng.randbytes(3900)))
        if row % 500 == 499:
            db.execute("COMMIT")
else:
    hot = rng.sample(range(rows), rows // 5)
    for _ in range(int(sys.argv[2])):
        db.execute("BEGIN")
        for _ in range(20):
            row = rng.choice(hot) if rng.random() < skew else rng.randrange(rows)
            db.execute("UPDATE t SET v = ? WHERE id = ?", (rng.randbytes(3900), row))
        db.execute("COMMIT")
PY
}

skewed() {
  fio --name=load --directory="$work/mnt" --filename=file --size=760M --direct=1 --ioengine=libaio --iodepth=16 \
    --bs=16k --randseed=1 --fallocate=none --output="$work/fio" "$@"
}

fileserver_on_f2fs() {
  local missing
  missing=$(missing_for_guest)
  [ -z "$missing" ] || { echo "skipped: f2fs (missing $missing)"; return; }
  mkdir -p "$share" && cp scripts/guest/fileserver.sh "$share"
  "$onefold" ssd create "$image" --preset tlc --size 1GiB --quiet
  in_guest "sh ./fileserver.sh prepare"
  serve_options+=(--record "$work/trace.oft")
  in_guest "sh ./fileserver.sh load"
  cat "$share/output"
  zstd -q -19 -f "$work/trace.oft" -o "$out/rec-streams-f2fs.oft.zst"
}

for name in "$@"; do
  [ "$name" != f2fs ] || { fileserver_on_f2fs; continue; }
  truncate -s 0 "$work/image"
  truncate -s 1G "$work/image"
  loop=$(losetup -b 4096 -f --show "$work/image")
  case $name in
    fio) mkfs.xfs -q "$loop" && mount -t xfs "$loop" "$work/mnt" ;;
    *) mkfs.ext4 -q -b 4096 -J size=32 -E lazy_itable_init=0,lazy_journal_init=0 "$loop" && mount "$loop" "$work/mnt" ;;
  esac
  case $name in
    rocksdb)
      cold 250M && rocksdb --benchmarks=fillseq && sync
      record rec-streams-rocksdb synced rocksdb --use_existing_db=1 --benchmarks=overwrite,waitforcompaction --writes=700000 --benchmark_write_rate_limit=15000000
      ;;
    sqlite | sqlite-skewed)
      cold 150M && sqlite load && sync
      record "rec-streams-$name" synced sqlite 12000 "$([ "$name" = sqlite ] && echo 0 || echo 0.75)"
      ;;
    fio)
      skewed --rw=write --bs=1M --end_fsync=1 && sync
      record rec-streams-fio synced skewed --rw=randwrite --random_distribution=zipf:1.1 --norandommap --io_size=4G
      ;;
    *) echo "record-streams: no load is named $name" >&2; exit 2 ;;
  esac
  df --output=pcent "$work/mnt" | tail -1
  umount "$work/mnt"
  losetup -d "$loop"
  loop=''
done
