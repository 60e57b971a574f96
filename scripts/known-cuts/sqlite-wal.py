"""SQLite with a write-ahead log and `synchronous=ARGUMENT`: each commit is announced."""

import sqlite3
import sys

store = sqlite3.connect("db", isolation_level=None)
store.execute("pragma journal_mode=wal")
store.execute(f"pragma synchronous={sys.argv[1]}")
store.execute("create table if not exists t(n integer primary key)")
for number in range(1, 25):
    store.execute("insert into t values(?)", (number,))
    print("row", number, flush=True)
