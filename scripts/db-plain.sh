#!/usr/bin/env bash
# The control of db-crash.sh: what do SQLite's own settings lose when power fails, without a device of
# ours? ext4 lies on a plain file, a disk without a cache, to which all that was ever written is durable.
# SQLite commits a few transactions and dies; the file is copied as it is, which loses what ext4 had
# not written yet. Then every reported transaction has to be in the copy, but for the last one of a
# rollback journal with synchronous=FULL: its commit is the deletion of the journal, and only EXTRA
# syncs the directory after that. Takes seconds. Needs root, loop devices and Python's sqlite3.
set -uo pipefail
cd "$(dirname "$0")/.."

. scripts/served.sh
skip_databases_without mkfs.ext4 e2fsck python3
folder=$(mktemp --directory)
disk=$folder/disk.img copy=$folder/copy.img mount=$folder/mount fuse=$folder/fuse
database=$mount/accounts.db reported=$folder/reported
mkdir "$mount"
touch "$folder/output" "$folder/verdict"
finish() {
  tear_down
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM
fail() {
  cat "$folder/output" "$folder/verdict" >&2
  echo "db-plain: $*" >&2
  exit 1
}
need() { "$@" > "$folder/output" 2>&1 || fail "failed: $*"; }
# insert FILE: it becomes the disk that is mounted. Nothing but a sync writes the journal of ext4.
insert() {
  loop=$(losetup --find --show "$1") || return 1
  mount_fs -o commit=300
}
eject() { umount "$mount" && detach; }

# keeps JOURNAL SYNCHRONOUS: whether the copy has every reported transaction.
keeps() {
  rm -f "$disk" "$reported"
  need truncate --size 64M "$disk"
  need mkfs.ext4 -q -F "$disk"
  need insert "$disk"
  need python3 scripts/db_crash.py commit "$database" "$reported" --journal "$1" --synchronous "$2" --count 20
  need cp --sparse=always "$disk" "$copy"
  need eject
  loop=$copy need replay
  loop=''
  need insert "$copy"
  python3 scripts/db_crash.py verify "$database" "$reported" > "$folder/verdict" 2>&1
  local verdict=$?
  need eject
  return "$verdict"
}

for setting in 'wal FULL' 'delete EXTRA'; do
  # shellcheck disable=SC2086  # two words
  keeps $setting || fail "journal_mode and synchronous $setting lost a transaction on a plain disk"
done
# A sync of the whole machine between commit and copy would save the transaction: three attempts.
for attempt in 1 2 3; do
  keeps delete FULL || break
  [ "$attempt" -lt 3 ] || fail 'delete FULL lost nothing: does SQLite sync the directory now?'
done
lost='db crash: 1 of 20 transactions are lost: [20]'
[ "$(cat "$folder/verdict")" = "$lost" ] || fail 'delete FULL lost something else than the last transaction'
echo 'db-plain ok: on a plain disk wal FULL and delete EXTRA lost nothing, delete FULL the last transaction'
