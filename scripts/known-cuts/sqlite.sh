# SQLite with a rollback journal and `synchronous=$1`: each commit is announced.
sqlite3 db "create table t(n integer primary key)" && sync db .
for n in $(seq 12); do
  sqlite3 db "pragma synchronous=$1; insert into t values($n)" && echo "row $n"
done
