# After a power cut: is every announced row there?
announced=$(wc -l < "$ONEFOLD_STDOUT")
[ "$announced" = 0 ] && exit 0
whole=$(sqlite3 rows.db "PRAGMA integrity_check;" 2>&1)
[ "$whole" = ok ] || { echo "damaged: $whole"; exit 2; }
found=$(sqlite3 rows.db "SELECT count(*) FROM rows WHERE id <= $announced;")
[ "$found" = "$announced" ] || { echo "$announced rows were announced, $found are there"; exit 1; }
