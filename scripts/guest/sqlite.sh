# Runs in the guest: SQLite with the extension on a drive without a file system, a block device (/dev/vda) as its control export
# is (/dev/vdb). Stock SQLite executes the same statements; both have to have the same rows, as has a copy that is exported after a
# program was killed.
cp libonefold_sqlite.so onefold-sqlite /tmp && cd /tmp || exit 1
disk=${1:-/dev/vda} control=${2:-/dev/vdb}

# Large transactions, so that checkpoints remap, then single ones that are synced, so that the WAL is paired.
work() {
  cat <<'SQL'
PRAGMA journal_mode=WAL;
PRAGMA wal_autocheckpoint=500;
CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
  INSERT INTO t SELECT i, printf('%.3000c', char(97 + i % 26)) FROM n;
SQL
  for round in $(seq 10); do
    echo "UPDATE t SET text = printf('%.3000c', char(65 + (id + $round) % 26)) WHERE (id * 7919 + $round) % 10 = 0;"
  done
  echo "PRAGMA synchronous=FULL;"
  for one in $(seq 1200); do echo "UPDATE t SET text = '$one' || text WHERE id = ($one * 61) % 2000;"; done
}
rows() {
  echo "SELECT count(*), sum(length(text)) FROM t;"
  echo ".sha3sum t"
}
extended() { sqlite3 -batch :memory: -cmd ".load ./libonefold_sqlite" -cmd ".open drive.db"; }

set -e
./onefold-sqlite create drive.db "$disk" "$control"
work | sqlite3 -batch stock.db >/dev/null
rows | sqlite3 -batch stock.db >stock
{ work; echo "PRAGMA onefold;"; } | extended | tail -n 1 >told
cat told
grep -q 'layout=paired backend=remap cloned_pages=[1-9]' told
rows | extended >reopened
cmp reopened stock
# Its last commit is in the WAL only.
change="UPDATE t SET text = 'in the WAL' WHERE id < 100;"
{ echo "$change"; echo '.shell kill -KILL $PPID'; } | extended || true
./onefold-sqlite export drive.db copy.db
{ echo "$change"; rows; } | sqlite3 -batch stock.db >stock
rows | sqlite3 -batch copy.db >copied
cmp copied stock
echo "the same rows as stock SQLite"
