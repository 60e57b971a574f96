#!/usr/bin/env python3
"""What SQLite writes to its device, as it is and with the extension of `onefold-sqlite`.

    scripts/write_once_sqlite.py [--updates N] [--rows N] [--fs xfs,btrfs,ext4] [--only LOAD]
        [--cache MIB] [--served ONEFOLD [--latency model] [--set KEY=VALUE]..]

Each row of the table is a new file system of 1 GiB on a loop device, and a process of the SQLite that Python has: a table of rows of
3.9 KB, then random updates, auto-checkpoint 1000. Writes are those of the loop device (/sys/block/*/stat) from the first update until
the database is closed and the file system synced. Contents are compared at the end. Needs root and loop devices; a file system whose
mkfs is missing is skipped. With --served the loop device lies on a drive that sees copies, served by that binary, and what is counted
is what the drive programs; the row without the extension is on a drive that sees none. The file system `device`, which needs --served, is
none: the extension has the database on the drive itself (`onefold-sqlite create`), which remaps, beside stock SQLite on ext4. LIBRARY is
the extension to use, with the command `onefold-sqlite` beside it, else they are built.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from write_once_copies import Drive, run

ROOT = Path(__file__).resolve().parent.parent
SECTOR = 512
ROW_BYTES = 3900
# Name, synchronous, updates of a transaction.
LOADS = [("NORMAL, 100 updates", "NORMAL", 100), ("FULL, 100 updates", "FULL", 100), ("FULL, 1 update", "FULL", 1)]


# Some Pythons are built without extensions of SQLite.
CAN_LOAD = "import sqlite3; sqlite3.Connection.enable_load_extension"


def interpreter() -> str | None:
    """A Python whose SQLite loads extensions."""
    for program in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([program, "-c", CAN_LOAD], capture_output=True, check=False).returncode == 0:
            return program
    return None


def connect(path: Path, library: Path | None) -> sqlite3.Connection:
    if library is not None:
        loader = sqlite3.connect(":memory:")
        loader.enable_load_extension(True)
        loader.load_extension(str(library))
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("pragma journal_mode=wal")
    return store


def counters(device: str, served: Path | None) -> dict[str, int]:
    """What was written to a loop device, in bytes; or of the drive below it: pages programmed by cause, saved by kind, and written by the host."""
    if served is None:
        return {"bytes": int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6]) * SECTOR}
    told = json.loads(run(os.environ["ONEFOLD"], "ssd", "info", served, "--format", "json"))["device"]
    flash = told["flash"]
    pages = {**flash["program_pages"], **flash["saved_pages"], "host": told["host"]["write_pages"]}
    return {**pages, "bytes": 4096 * sum(flash["program_pages"].values())}


def load(store: sqlite3.Connection, rows: int, updates: int, group: int) -> None:
    numbers = random.Random(1)
    for first in range(0, updates, group):
        store.execute("begin")
        for _ in range(min(group, updates - first)):
            store.execute("update t set b=? where n=?", (numbers.randbytes(ROW_BYTES), numbers.randrange(rows)))
        store.execute("commit")


def child(path: Path, library: Path | None, device: str, served: Path | None, synchronous: str, group: int, rows: int, updates: int) -> None:
    """One run; prints bytes written and what the extension says."""
    store = connect(path, library)
    store.execute("create table t(n integer primary key, b blob)")
    numbers = random.Random(0)
    store.execute("begin")
    store.executemany("insert into t values(?, ?)", ((n, numbers.randbytes(ROW_BYTES)) for n in range(rows)))
    store.execute("commit")
    store.execute("pragma wal_checkpoint(truncate)")
    os.sync()
    before, start = counters(device, served), time.monotonic()
    store.execute(f"pragma synchronous={synchronous}")
    store.execute(f"pragma cache_size=-{1024 * int(os.environ['CACHE_MIB'])}")
    load(store, rows, updates, group)
    told = store.execute("pragma onefold").fetchone() if library else None
    store.close()
    os.sync()
    seconds, after = time.monotonic() - start, counters(device, served)
    part = {key: after[key] - before[key] for key in after if after[key] != before[key]}
    print(json.dumps({"counts": part, "told": told[0] if told else "stock", "seconds": seconds}))


@contextlib.contextmanager
def disk(kind: str, options: argparse.Namespace, *, seen: bool) -> Iterator[tuple[str, Path, Path | None]]:
    """A loop device with a file system, where to mount it, and the image of the drive below it."""
    with tempfile.TemporaryDirectory(prefix="write-once-") as folder:
        if options.served:
            is_bare = kind == "device" and seen
            keys = ["ftl.remap=lh"] if is_bare else options.set if seen else []
            own = argparse.Namespace(onefold=options.served, latency=options.latency)
            drive = Drive(own, Path(folder), "" if is_bare else kind, [] if is_bare else [f"mkfs.{system(kind)}", "-q"], keys)
            try:
                yield drive.loop, drive.point, drive.image
            finally:
                drive.off()
            return
        image, point = Path(folder, "image"), Path(folder, "mounted")
        run("truncate", "-s", "1G", image)
        run(f"mkfs.{kind}", "-q", image)
        point.mkdir()
        device = run("losetup", "--find", "--show", image).strip()
        try:
            yield device, point, None
        finally:
            run("losetup", "--detach", device)


def system(kind: str) -> str:
    """The file system on which stock SQLite is."""
    return "ext4" if kind == "device" else kind


def rows_of(path: Path) -> str:
    """Digest of the rows of a standard database."""
    store = sqlite3.connect(path)
    if store.execute("pragma integrity_check").fetchone() != ("ok",):
        raise RuntimeError(f"{path}: the database is damaged")
    digest = hashlib.sha256()
    for _, content in store.execute("select n, b from t order by n"):
        digest.update(content)
    store.close()
    return digest.hexdigest()


def measure_bare(library: Path, synchronous: str, group: int, options: argparse.Namespace) -> dict:
    """As `measure`, with the database on the drive itself."""
    command = library.with_name("onefold-sqlite")
    with disk("device", options, seen=True) as (device, point, served), tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "db"), Path(folder, "copy")
        run(command, "create", path, point.with_name("fuse") / "disk", point.with_name("fuse") / "disk.ctl")
        words = [path, library, device, served, synchronous, group, options.rows, options.updates]
        told = json.loads(run(options.python, __file__, "--child", *words))
        run(command, "export", path, copy)
        return {**told, "digest": rows_of(copy)}


def measure(kind: str, library: Path | None, synchronous: str, group: int, options: argparse.Namespace) -> dict:
    """What the run counted, what the extension says, seconds, and a digest of the rows."""
    with disk(kind, options, seen=library is not None) as (device, point, served):
        run("mount", device, point)
        try:
            path = point / "db"
            words = [path, library or "", device, served or "", synchronous, group, options.rows, options.updates]
            told = json.loads(run(options.python, __file__, "--child", *words))
            # The extension is not needed after a clean close.
            digest = rows_of(path)
        finally:
            run("umount", point)
    return {**told, "digest": digest}


def row(kind: str, name: str, stock: dict, own: dict) -> str:
    """A row of the table."""
    before, after = stock["counts"]["bytes"], own["counts"]["bytes"]
    difference, seconds = f"{100 * (after - before) / before:+.1f} %", f"{stock['seconds']:.1f} / {own['seconds']:.1f}"
    return f"| {kind} | {name} | {before / 2**20:.1f} | {after / 2**20:.1f} | {difference} | {seconds} | `{own['told']}` |"


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        path, library, device, served, synchronous, group, rows, updates = sys.argv[2:]
        below = Path(served) if served else None
        child(Path(path), Path(library) if library else None, device, below, synchronous, int(group), int(rows), int(updates))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--fs", default="xfs,btrfs,ext4")
    parser.add_argument("--only", default="", help="loads whose name begins so")
    parser.add_argument("--served", default="", help="binary that serves the drive")
    parser.add_argument("--set", action="append", default=[], help="keys of a served drive that sees copies")
    parser.add_argument("--cache", type=int, default=2, metavar="MIB", help="SQLite's own cache; 2 is its default")
    parser.add_argument("--latency", choices=("none", "model"), default="none", help="of a served drive: at once, or as the modelled one would")
    options = parser.parse_args()
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        print("skipped: writes of SQLite (root and loop devices)")
        return 0
    options.set = options.set or ["ftl.remap=lh", "dedup.scope=writes", "dedup.hash=xxh3"]
    os.environ["ONEFOLD"], os.environ["CACHE_MIB"] = options.served, str(options.cache)
    options.python = interpreter()
    if options.python is None:
        print("skipped: writes of SQLite (a Python whose SQLite loads extensions)")
        return 0
    library = os.environ.get("LIBRARY")
    if library is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "--package", "onefold-sqlite"], cwd=ROOT, check=True)
        library = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "libonefold_sqlite.so"
    library = Path(library).resolve()
    version = run(options.python, "-c", "import sqlite3; print(sqlite3.sqlite_version)").strip()
    print(f"SQLite {version}, {options.updates:,} updates of {options.rows:,} rows of {ROW_BYTES} bytes; MiB written to the device")
    print("| file system | load | stock | extension | difference | s, stock / extension | what `PRAGMA onefold` says |\n|---|---|---|---|---|---|---|")
    for kind in options.fs.split(","):
        if shutil.which(f"mkfs.{system(kind)}") is None:
            print(f"| {kind} | skipped: mkfs.{system(kind)} is missing | | | | | |")
            continue
        for name, synchronous, group in LOADS:
            if not name.startswith(options.only):
                continue
            stock = measure(kind, None, synchronous, group, options)
            if kind == "device":
                own = measure_bare(library, synchronous, group, options)
            else:
                own = measure(kind, library, synchronous, group, options)
            if stock["digest"] != own["digest"]:
                print(f"FAIL {kind}, {name}: the rows differ", file=sys.stderr)
                return 1
            print(row(kind, name, stock, own), flush=True)
            if options.served:
                for label, one in (("stock", stock), ("extension", own)):
                    print(f"{label}: {json.dumps(one['counts'])}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
