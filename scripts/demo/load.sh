# So many rows, each in a transaction of its own.
{
  echo "PRAGMA synchronous=FULL; CREATE TABLE rows(id INTEGER PRIMARY KEY, text);"
  for row in $(seq "$1"); do
    echo "REPLACE INTO rows VALUES(abs(random() % 20000), hex(randomblob(200)));"
  done
} | sqlite3 rows.db
