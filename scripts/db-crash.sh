#!/usr/bin/env bash
# A database on ext4 on a served device with a large volatile buffer; the server dies by SIGKILL in
# mid-write, again and again. SQLite (in turn with a write-ahead log, synchronous=FULL, and with a
# rollback journal, synchronous=EXTRA: scripts/db-plain.sh shows why) commits numbered transactions and
# reports each committed number, while another program writes files that nobody syncs. After every
# kill: `ssd check`, e2fsck, the database's own integrity check, and every reported transaction has to be
# there. Needs root, /dev/fuse, loop devices and Python's sqlite3. `short` is part of `make test`.
#
#   scripts/db-crash.sh [short|full|KILLS] [SEED]
#
# DB_CRASH_POLICY, DB_CRASH_SIZE (0: no buffer) and DB_CRASH_SYNCHRONOUS (of the rollback journal) change
# what is tested.
set -uo pipefail
cd "$(dirname "$0")/.."

case "${1:-full}" in
  short) kills=4 ;;
  full) kills=40 ;;
  '' | *[!0-9]*) sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
  *) kills=$1 ;;
esac
seed=${2:-$((RANDOM * 32768 + RANDOM))}
buffer=(--set "buffer.policy=${DB_CRASH_POLICY:-aoi}" --set "buffer.size=${DB_CRASH_SIZE:-64MiB}"
  --set buffer.volatile=true)

. scripts/served.sh
skip_databases_without mkfs.ext4 e2fsck python3
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
fi

folder=$(mktemp --directory)
image=$folder/disk.img fuse=$folder/fuse mount=$folder/mount
mkdir "$fuse" "$mount"
writers=()
end_writers() {
  for writer in "${writers[@]}"; do
    kill -KILL "$writer" 2> /dev/null
    wait "$writer" 2> /dev/null
  done
  writers=()
}
finish() {
  end_writers
  tear_down
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM
# need COMMAND..: its output is shown only if it fails, which ends the test.
need() {
  if ! "$@" > "$folder/output" 2>&1; then
    tail -n 20 "$folder/output" >&2
    echo "db-crash: failed after $done_kills kills: $*" >&2
    echo "reproduce: scripts/db-crash.sh $kills $seed" >&2
    exit 1
  fi
}

done_kills=0
RANDOM=$((seed % 32768))
need "$onefold" ssd create "$image" --preset tlc --size 1GiB "${buffer[@]}"
for kill in $(seq $((kills + 1))); do
  need serve
  need attach
  if [ "$kill" = 1 ]; then need mkfs.ext4 -q -F "$loop"; else need replay; fi
  need mount_fs
  database=$mount/accounts.db reported=$folder/reported
  need python3 scripts/db_crash.py verify "$database" "$reported"
  [ "$kill" -le "$kills" ] || break
  if [ $((kill % 2)) = 1 ]; then settings=(wal FULL); else settings=(delete "${DB_CRASH_SYNCHRONOUS:-EXTRA}"); fi
  python3 scripts/db_crash.py commit "$database" "$reported" --journal "${settings[0]}" \
    --synchronous "${settings[1]}" --seed $((seed + kill)) 2> "$folder/errors" &
  writers+=($!)
  python3 scripts/db_crash.py litter "$mount/litter" --seed $((seed + kill)) 2> /dev/null &
  writers+=($!)
  sleep "$((1 + RANDOM % 2)).$((RANDOM % 10))"
  if ! kill -0 "${writers[0]}" 2> /dev/null; then
    cat "$folder/errors" >&2
    echo "db-crash: the database stopped before the kill (seed $seed)" >&2
    exit 1
  fi
  power_off
  end_writers
  need let_go
  need "$onefold" ssd check "$image"
  done_kills=$kill
done
need umount "$mount"
need detach
need stop
echo "db-crash ok: $kills kills, $(wc -l < "$folder/reported") reported transactions, all there, seed $seed"
