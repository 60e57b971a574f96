# Commits rows 1 to $2 with `synchronous=$1`, and announces each.
sqlite3 rows.db "CREATE TABLE rows(id INTEGER PRIMARY KEY);"
for row in $(seq "$2"); do
  sqlite3 rows.db "PRAGMA synchronous=$1; INSERT INTO rows VALUES($row);" && echo "committed $row"
done
