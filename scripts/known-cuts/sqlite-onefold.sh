# SQLite with the extension of onefold-sqlite and `synchronous=$1`, whose checkpoints clone or write ($2), with a WAL that is aligned or
# paired in the end ($3): each commit is announced, checkpoints come often.
{
  echo ".load $ONEFOLD_SQLITE_LIBRARY"
  echo ".open db"
  echo ".output told"
  echo "pragma journal_mode=wal; pragma synchronous=$1; pragma wal_autocheckpoint=20;"
  echo "create table if not exists t(n integer primary key, b blob);"
  if [ "${3:-aligned}" = paired ]; then
    # Each commit is of one page, which is there.
    echo "with recursive i(n) as (select 1 union all select n + 1 from i where n < 70) insert into t select n, randomblob(3800) from i;"
    for n in $(seq 70); do
      echo "update t set b = randomblob(3900) where n = $n;"
      echo ".shell echo row $n"
    done
  else
    for n in $(seq 40); do
      # Pages that were cloned before change again. With fewer pages in a commit the checkpoint would write.
      echo "begin; insert into t values($n, randomblob(3900));"
      echo "update t set b = randomblob(3900) where n % 4 = $((n % 4)); commit;"
      echo ".shell echo row $n"
    done
  fi
  echo "pragma onefold;"
} | sqlite3 -bail :memory:
grep -q "layout=${3:-aligned} backend=${2:-plain} " told || { cat told >&2; exit 1; }
