# Exit code 1: an announced row is gone; 2: damaged.
n=$(grep -c '^row' "$ONEFOLD_STDOUT")
[ "$n" = 0 ] && exit 0
whole=$(sqlite3 db "pragma integrity_check" 2>&1)
[ "$whole" = ok ] || { echo "damaged: $whole"; exit 2; }
# The table can be gone with its rows.
found=$(sqlite3 db "select count(*) from t where n <= $n" 2> /dev/null)
[ "$found" = "$n" ] || { echo "$n rows announced, ${found:-no table} there"; exit 1; }
