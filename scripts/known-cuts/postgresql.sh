# A PostgreSQL server with its defaults: each row is announced.
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
install -d -o postgres data
as="setpriv --reuid postgres --regid postgres --init-groups"
$as initdb -D data > /dev/null || exit 1
$as postgres -D data -k /tmp -p 5599 -h '' 2> /dev/null &
until psql -h /tmp -p 5599 -U postgres -qc "create table t(n int)" 2> /dev/null; do sleep 0.1; done
for n in $(seq 20); do psql -h /tmp -p 5599 -U postgres -qc "insert into t values($n)" && echo "row $n"; done
