#!/usr/bin/env python3
"""SQLite with the extension of `onefold-sqlite` under kills: equal to stock SQLite, and nothing that was committed is lost.

    scripts/write_once_crash.py [short|full|KILLS] [SEED] [--only NAME] [--onefold PATH] [--library PATH]

For each way to write once (a file system with reflinks, a drive that sees copies, a drive without a file system) a drive of 1 GiB is
served, and a program commits numbered transactions, each of which it reports. Then, by chance, the server is killed with it (a power cut:
what the host and the buffer of the drive had not written is lost; synchronous=FULL), or the program alone (synchronous=NORMAL). After every kill the drive
and its file system are checked. The database has to hold every reported transaction, and be equal to one of stock SQLite after the same
transactions: as it is, after a remount, and as a copy without the extension that `onefold-sqlite` made. Each way ends with a clean close
and one more comparison. KILLS are those of each way: 3 for short, 200 for full. With full there is a control: with synchronous=OFF
transactions have to get lost, or this test could not see a loss. Needs root, /dev/fuse, loop devices and a Python whose SQLite loads
extensions; a way whose mkfs is missing is skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from write_once_copies import Drive, run
from write_once_sqlite import CAN_LOAD, connect, interpreter

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = {"short": 3, "full": 200}
BUFFER = ["buffer.policy=aoi", "buffer.size=64MiB", "buffer.volatile=true"]
# A drive that sees copies has no buffer beside that.
COPIES = ["ftl.remap=lh", "dedup.scope=writes", "dedup.hash=xxh3", "ftl.zeroes=unmap"]
ROWS, CHANGES = 400, 8
# Transactions of a kind in a row.
PHASE = 100
# What a child says when a database is not as it has to be.
WRONG = 3


def changes(number: int) -> Iterator[tuple[bytes, int]]:
    """Contents and rows of a transaction, which follow from its number."""
    for at in range(CHANGES):
        length = 100 + (number * 7919 + at * 104_729) % 9000
        content = hashlib.sha256(f"{number}.{at}".encode()).digest() * (length // 32 + 1)
        yield content[:length], (number * 7 + at * 131) % ROWS


def create(store: sqlite3.Connection) -> None:
    store.execute("create table if not exists t(n integer primary key, b blob)")
    store.execute("create table if not exists entry(number integer primary key)")


def apply(store: sqlite3.Connection, number: int) -> None:
    store.execute("begin immediate")
    # Others are of one page: where they are synced, the WAL is paired after a checkpoint.
    if number // PHASE % 2 == 0:
        store.executemany("replace into t(b, n) values(?, ?)", changes(number))
    store.execute("insert into entry values(?)", (number,))
    store.execute("commit")


def last(store: sqlite3.Connection) -> int:
    return store.execute("select coalesce(max(number), 0) from entry").fetchone()[0]


def digest(store: sqlite3.Connection) -> str:
    """Of every row of both tables."""
    found = hashlib.sha256()
    for table in ("t", "entry"):
        for row in store.execute(f"select * from {table} order by 1"):
            found.update(repr(row).encode())
    return found.hexdigest()


def commit(database: Path, reported: Path, library: Path, synchronous: str) -> None:
    """Commits until it is killed."""
    store = connect(database, library)
    store.execute("pragma wal_autocheckpoint=25")
    store.execute(f"pragma synchronous={synchronous}")
    create(store)
    with reported.open("a") as report:
        for number in itertools.count(last(store) + 1):
            apply(store, number)
            report.write(f"{number}\n")
            report.flush()
            if number % 20 == 0:
                reported.with_name("told").write_text(store.execute("pragma onefold").fetchone()[0])


def verify(database: Path, reported: Path, library: Path | None) -> int:
    """Compares a database with what was reported and with stock SQLite. Prints the number of transactions."""
    store = connect(database, library)
    create(store)
    numbers = [int(line) for line in reported.read_text().split()] if reported.exists() else []
    expected = max(numbers, default=0)
    if (whole := store.execute("pragma integrity_check").fetchall()) != [("ok",)]:
        print(f"integrity_check says {whole[:3]}")
        return WRONG
    count = last(store)
    # The last transaction may be there without its report, as the kill came between.
    if count not in (expected, expected + 1):
        print(f"{expected} transactions were reported, {count} are there")
        return WRONG
    stock = sqlite3.connect(reported.with_name("stock"), isolation_level=None)
    stock.execute("pragma synchronous=off")
    create(stock)
    for number in range(last(stock) + 1, count + 1):
        apply(stock, number)
    if digest(store) != digest(stock):
        print(f"not equal to stock SQLite after {count} transactions")
        return WRONG
    store.close()
    if count > expected:
        with reported.open("a") as report:
            report.write(f"{count}\n")
    print(count)
    return 0


class Lost(Exception):
    """A database that is not as it has to be."""


class Way(Drive):
    """A served drive with a database on it."""

    def __init__(self, options: argparse.Namespace, folder: Path, name: str) -> None:
        _, sets, kind, make, self.saves = next(way for way in WAYS if way[0] == name)
        # Kills while the WAL was paired.
        self.paired = 0
        self.name, self.reported = name, folder / "reported"
        super().__init__(options, folder, kind, make, sets)
        if not kind:
            run(options.command, "create", self.database, self.fuse / "disk", self.fuse / "disk.ctl", "--wal", 64)

    @property
    def database(self) -> Path:
        return (self.point if self.kind else self.folder) / "db"

    def mount(self) -> None:
        if self.kind:
            super().mount()

    def unmount(self) -> None:
        """Without a file system the server is stopped and started."""
        if self.kind:
            super().unmount()
        else:
            self.off()
            self.on()

    def power_cut(self) -> None:
        """Kills the server, and lets go of what lay on it."""
        self.server.kill()
        self.server.wait()
        held = [["umount", "--lazy", self.point], ["losetup", "--detach", self.loop]] if self.kind else []
        for words in [*held, ["umount", "--lazy", self.fuse]]:
            subprocess.run(list(map(str, words)), capture_output=True, check=False)
        while any(os.path.ismount(point) for point in (self.fuse, self.point)):
            time.sleep(0.05)
        run(self.options.onefold, "ssd", "check", self.image)
        self.on()
        if self.kind == "ext4" and subprocess.run(["e2fsck", "-p", self.loop], capture_output=True, check=False).returncode > 1:
            raise Lost("e2fsck -p does not repair it")

    def check(self) -> None:
        """The file system, which is not mounted but has been since the last power cut."""
        if self.kind:
            super().check()

    def verify(self, database: Path, library: Path | None) -> str:
        words = [self.options.python, __file__, "--child", "verify", database, self.reported, library or ""]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        if done.returncode == WRONG:
            raise Lost(f"{database.name}: {done.stdout.strip()}")
        if done.returncode:
            raise RuntimeError(f"{database}: {done.stderr[-2000:]}")
        return done.stdout.strip()

    def verify_copy(self) -> None:
        """As it is now, without the extension."""
        copy = self.folder / "copy"
        for path in self.folder.glob("copy*"):
            path.unlink()
        if not self.kind:
            run(self.options.command, "export", self.database, copy)
            self.verify(copy, None)
            return
        for ending in ("", "-wal"):
            if (source := Path(f"{self.database}{ending}")).exists():
                shutil.copy(source, f"{copy}{ending}")
        if copy.exists():
            run(self.options.command, "recover", copy)
            self.verify(copy, None)

    def saved(self) -> str:
        """What shows that pages were written once."""
        if not self.saves:
            pages = json.loads(run(self.options.onefold, "ssd", "info", self.image, "--format", "json"))["device"]["flash"]["saved_pages"]
            copies = pages["copy_read"] + pages["copy_write"]
            return f"{copies:,} copies that the drive saw" if copies else ""
        told = self.told()
        return told if self.saves in told else ""

    def told(self) -> str:
        """What the extension has said of itself last."""
        path = self.folder / "told"
        return path.read_text() if path.exists() else ""

    def commit(self, synchronous: str, seconds: float) -> subprocess.Popen:
        words = [self.options.python, __file__, "--child", "commit", self.database, self.reported, self.options.library, synchronous]
        with (self.folder / "errors").open("w") as errors:
            child = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=errors)
        time.sleep(seconds)
        if child.poll() is not None:
            raise RuntimeError(f"the database stopped before the kill: {(self.folder / 'errors').read_text()[-2000:]}")
        return child


# Name, keys of the drive, file system, mkfs, and what the extension says that it does; without it the drive does.
WAYS: list[tuple[str, list[str], str, list[str], str]] = [
    ("copies-ext4", COPIES, "ext4", ["mkfs.ext4", "-q", "-F"], ""),
    ("reflink-xfs", BUFFER, "xfs", ["mkfs.xfs", "-q", "-f", "-ssize=4096"], "backend=reflink"),
    ("device", ["ftl.remap=lh", *BUFFER], "", [], "backend=remap"),
]


def end(child: subprocess.Popen) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()


def round_of(way: Way, rng: random.Random, synchronous: str | None) -> tuple[int, str]:
    """Commits, kills, and looks. Returns how many transactions there are, and what shows that pages were written once."""
    is_cut = synchronous is not None or rng.random() < 0.5
    child = way.commit(synchronous or ("FULL" if is_cut else "NORMAL"), rng.uniform(0.4, 2))
    saved = way.saved()
    way.paired += "layout=paired" in way.told()
    if is_cut:
        # While the server dies the program still runs, and must not report what is not durable.
        way.server.kill()
        end(child)
        way.power_cut()
        way.mount()
    else:
        end(child)
    way.verify_copy()
    way.verify(way.database, way.options.library)
    way.unmount()
    way.check()
    way.mount()
    return int(way.verify(way.database, way.options.library)), saved


def campaign(name: str, kills: int, options: argparse.Namespace, synchronous: str | None = None) -> str:
    """Kills of one way, and what was found."""
    rng = random.Random(f"{options.seed} {name}")
    saved, count = [], 0
    with tempfile.TemporaryDirectory(prefix="write-once-crash-") as folder:
        way = Way(options, Path(folder), name)
        try:
            way.mount()
            for kill in range(kills):
                try:
                    count, found = round_of(way, rng, synchronous)
                except (Lost, RuntimeError) as error:
                    raise type(error)(f"{name}, kill {kill + 1}, seed {options.seed}: {error}") from error
                saved.append(found)
            # Clean now: any SQLite reads it.
            if way.kind:
                way.verify(way.database, None)
            else:
                way.verify_copy()
        finally:
            way.off()
    if not any(saved):
        raise Lost(f"{name}, seed {options.seed}: no page was written once")
    return f"{way.paired} with a paired WAL, {count:,} transactions; {max(saved, key=len)}"


def control(options: argparse.Namespace) -> None:
    """Without syncs a power cut has to lose something."""
    try:
        campaign("copies-ext4", 10, options, "OFF")
    except Lost as lost:
        print(f"control ok, synchronous=OFF: {lost}", flush=True)
        return
    raise Lost("ten power cuts with synchronous=OFF lost nothing: would a loss be seen?")


def missing_of(options: argparse.Namespace) -> str:
    """What this test needs and is not here."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists() or not Path("/dev/fuse").exists():
        return "root, /dev/fuse or loop devices"
    if options.python is None:
        return CAN_LOAD
    if options.library is None or not options.command.exists():
        return f"onefold-sqlite and its library beside {options.onefold}"
    return ""


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        action, database, reported, library, *rest = sys.argv[2:]
        extension = Path(library) if library else None
        if action == "verify":
            return verify(Path(database), Path(reported), extension)
        commit(Path(database), Path(reported), Path(library), rest[0])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", default="full")
    parser.add_argument("seed", nargs="?", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", default="", help="ways whose name begins so")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--onefold", type=Path, default=Path(os.environ.get("ONEFOLD", target / "onefold")))
    parser.add_argument("--library", type=Path, help="the extension; beside onefold unless given")
    parser.add_argument("--command", type=Path, help="onefold-sqlite; beside onefold unless given")
    options = parser.parse_args()
    options.python = interpreter()
    beside = options.onefold.resolve().parent
    found = [path for path in (beside / "libonefold_sqlite.so", beside / "deps/libonefold_sqlite.so") if path.exists()]
    options.library = options.library or (found[0] if found else None)
    options.command = options.command or beside / "onefold-sqlite"
    if missing := missing_of(options):
        print(f"skipped: SQLite under kills (missing {missing})")
        return int("t1" in os.environ.get("ONEFOLD_REQUIRE", "").split(","))
    if not options.kills.isdecimal() and options.kills not in BUDGETS:
        parser.error(f"KILLS is {options.kills}, expected short, full or a number")
    kills = BUDGETS.get(options.kills) or int(options.kills)
    for name, _, _, make, _ in WAYS:
        if not name.startswith(options.only):
            continue
        if make and shutil.which(make[0]) is None:
            print(f"skipped: {name} (no {make[0]})")
            continue
        print(f"{name} ok: {kills} kills, {campaign(name, kills, options)}, seed {options.seed}", flush=True)
    if options.kills == "full":
        control(options)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Lost, RuntimeError) as error:
        sys.exit(f"write once: {error}\nreproduce: scripts/write_once_crash.py with that seed")
