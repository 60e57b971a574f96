# SQLite with the extension of onefold-sqlite and `synchronous=$1`: each commit is announced, checkpoints come often.
{
  echo ".load $ONEFOLD_SQLITE_LIBRARY"
  echo ".open db"
  echo ".output told"
  echo "pragma journal_mode=wal; pragma synchronous=$1; pragma wal_autocheckpoint=7;"
  echo "create table if not exists t(n integer primary key, b blob);"
  for n in $(seq 40); do
    # Pages that were cloned before change again.
    echo "begin; insert into t values($n, randomblob(3900));"
    echo "update t set b = randomblob(3900) where n = $((n * 7 % 41)); commit;"
    echo ".shell echo row $n"
  done
  echo "pragma onefold;"
} | sqlite3 -bail :memory:
grep -q layout=aligned told || { echo "the WAL is not aligned" >&2; exit 1; }
