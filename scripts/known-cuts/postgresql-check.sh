# Exit code 1: an announced row is gone, or the server does not start.
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
n=$(grep -c '^row' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && exit 0
socket=$(mktemp --directory)
chown postgres "$socket"
setpriv --reuid postgres --regid postgres --init-groups postgres -D data -k "$socket" -p 5599 -h '' 2> "$socket/log" &
server=$!
found=
for _ in $(seq 100); do
  found=$(psql -h "$socket" -p 5599 -U postgres -qAtXc "select count(*) from t where n <= $n" 2> /dev/null) && break
  kill -0 $server 2> /dev/null || break
  sleep 0.1
done
kill -INT $server 2> /dev/null
wait $server
rm -rf "$socket"
[ "$found" = "$n" ] || { echo "$n rows announced, $found there"; exit 1; }
