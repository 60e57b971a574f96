# SQLite with the extension of onefold-sqlite and `synchronous=$1`, whose checkpoints clone or write ($2): each commit is announced, checkpoints come often.
{
  echo ".load $ONEFOLD_SQLITE_LIBRARY"
  echo ".open db"
  echo ".output told"
  echo "pragma journal_mode=wal; pragma synchronous=$1; pragma wal_autocheckpoint=20;"
  echo "create table if not exists t(n integer primary key, b blob);"
  for n in $(seq 40); do
    # Pages that were cloned before change again. With fewer pages in a commit the checkpoint would write.
    echo "begin; insert into t values($n, randomblob(3900));"
    echo "update t set b = randomblob(3900) where n % 4 = $((n % 4)); commit;"
    echo ".shell echo row $n"
  done
  echo "pragma onefold;"
} | sqlite3 -bail :memory:
grep -q "layout=aligned backend=${2:-plain} " told || { cat told >&2; exit 1; }
