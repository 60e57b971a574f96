# Exit code 1: an announced row is gone; 2: damaged. Looks with the extension, and without it after a recovery.
n=$(grep -c '^row' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && exit 0
look() {
  whole=$("$@" "pragma integrity_check" 2>&1)
  [ "$whole" = ok ] || { echo "damaged: $whole"; exit 2; }
  found=$("$@" "select count(*) from t where n <= $n and length(b) = 3900" 2> /dev/null)
  [ "$found" = "$n" ] || { echo "$n rows announced, ${found:-no table} there"; exit 1; }
}
cp db copy
[ -e db-wal ] && cp db-wal copy-wal
"$ONEFOLD_SQLITE" recover copy > /dev/null || { echo "cannot be recovered"; exit 2; }
look sqlite3 copy
look sqlite3 -cmd ".load $ONEFOLD_SQLITE_LIBRARY" -cmd ".open db" :memory:
