"""Commit numbered transactions to a database, and verify that all reported ones are there.

`commit` moves amounts between accounts and adds a numbered row, in one transaction, and appends the
number to a file on another disk once SQLite says that it is committed. `verify` reads that file and
the database. `litter` writes files and syncs none of them, so that the buffer of the device holds dirty
data when power goes.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import mmap
import os
import random
import sqlite3
import sys
import time
from pathlib import Path

ACCOUNTS = 2000
AMOUNT = 100


def body(number: int) -> bytes:
    """Content of a row: 200 B to 9 kB that follow from its number."""
    length = 200 + number * 7919 % 9000
    return (hashlib.sha256(str(number).encode()).digest() * (length // 32 + 1))[:length]


def connect(database: Path, journal: str, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    mode = connection.execute(f"PRAGMA journal_mode={journal}").fetchone()[0]
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("PRAGMA wal_autocheckpoint=50")
    if mode != journal:
        sys.exit(f"db crash: journal_mode is {mode}, expected {journal}")
    return connection


def commit(options: argparse.Namespace) -> None:
    """Commit until the device is gone, or `count` times and die without closing the database."""
    rng = random.Random(options.seed)
    connection = connect(options.target, options.journal, options.synchronous)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS account(id INTEGER PRIMARY KEY, amount INTEGER)")
    connection.execute("CREATE TABLE IF NOT EXISTS entry(number INTEGER PRIMARY KEY, body BLOB)")
    if connection.execute("SELECT count(*) FROM account").fetchone()[0] == 0:
        rows = ((account, AMOUNT) for account in range(ACCOUNTS))
        connection.executemany("INSERT INTO account VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    first = (connection.execute("SELECT max(number) FROM entry").fetchone()[0] or 0) + 1
    with options.reported.open("a") as report:
        for number in itertools.count(first):
            if options.count and number == first + options.count:
                os._exit(0)
            connection.execute("BEGIN IMMEDIATE")
            for account, change in ((rng.randrange(ACCOUNTS), 1), (rng.randrange(ACCOUNTS), -1)):
                statement = "UPDATE account SET amount = amount + ? WHERE id = ?"
                connection.execute(statement, (change, account))
            connection.execute("INSERT INTO entry VALUES (?, ?)", (number, body(number)))
            connection.execute("COMMIT")
            report.write(f"{number}\n")
            report.flush()


def litter(folder: Path, seed: int) -> None:
    """Write over files past the page cache, in sequence and at random places; sync nothing."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    data = mmap.mmap(-1, 65536)  # direct I/O wants aligned memory
    while True:
        file = os.open(folder / str(rng.randrange(16)), os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        start = rng.randrange(256) * 4096
        for at in range(rng.choice((1, 4, 32))):
            data[:] = rng.randbytes(len(data))
            size = rng.choice((4096, len(data)))
            os.pwrite(file, memoryview(data)[:size], start + at * size)
        os.close(file)
        time.sleep(0.01)


def verify(database: Path, reported: Path) -> None:
    """Every reported transaction is there, as a whole."""
    if not reported.exists():
        return
    numbers = [int(line) for line in reported.read_text().splitlines()]
    if not numbers:
        sys.exit("db crash: no transaction was reported, nothing to verify")
    connection = sqlite3.connect(database)
    integrity = connection.execute("PRAGMA integrity_check").fetchall()
    if integrity != [("ok",)]:
        sys.exit(f"db crash: integrity_check says {integrity[:5]}")
    rows = dict(connection.execute("SELECT number, body FROM entry"))
    missing = [number for number in numbers if number not in rows]
    if missing:
        sys.exit(f"db crash: {len(missing)} of {len(numbers)} transactions are lost: {missing[:10]}")
    wrong = [number for number, content in rows.items() if content != body(number)]
    total = connection.execute("SELECT sum(amount) FROM account").fetchone()[0]
    # The last transaction may be there without its report, as the kill came between.
    beyond = len(rows) - len(numbers)
    if wrong or beyond > 1 or total != ACCOUNTS * AMOUNT or sorted(rows) != list(range(1, len(rows) + 1)):
        what = f"{len(rows)} rows for {len(numbers)} reports, accounts hold {total}"
        sys.exit(f"db crash: rows {wrong[:10]} are wrong, or the sums are: {what}")
    connection.close()
    if beyond:
        with reported.open("a") as report:
            report.write(f"{len(rows)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("commit", "litter", "verify"))
    parser.add_argument("target", type=Path, help="database or folder")
    parser.add_argument("reported", type=Path, nargs="?", help="numbers of committed transactions")
    parser.add_argument("--journal", choices=("wal", "delete"), default="wal")
    parser.add_argument("--synchronous", choices=("FULL", "EXTRA"), default="FULL")
    parser.add_argument("--count", type=int, help="transactions, without end unless given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.action == "commit":
        commit(options)
    elif options.action == "litter":
        litter(options.target, options.seed)
    else:
        verify(options.target, options.reported)


if __name__ == "__main__":
    main()
