"""Measures what real programs write to flash: bytes programmed for each byte that the file system sent to its block device.

Each cell is a program on ext4 on a loop device on a served file, on a copy of the same aged image: a drive with nothing above it, or
with a volume. The counters are the server's own, read before and after, with what `sync` and unmounting add. `limit` is what a drive
without power-loss protection has to program at least: what the file system sent, rounded up to 16 KiB at each flush, from a recording
of the run on the bare drive. Needs root, FUSE, loop devices, fio, git and tar.

    scripts/factor.py --onefold target/release/onefold --folder /tmp/factor
    scripts/factor.py ... --drive tlc --layout bare --layout volume --program sqlite-wal-normal
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE_BYTES = 4096
UNIT_BYTES = 16384
# Arguments of `volume create`; `None`: no volume.
LAYOUTS: dict[str, list[str] | None] = {"bare": None, "volume": [], "volume-4k": ["--unit", "4KiB"]}
SOURCE = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"factor: {' '.join(map(str, command))}: {done.stderr or done.stdout}")


@dataclass
class Counters:
    """What a server counted."""

    sent: int
    programmed: int
    flushes: int
    hops: dict[str, int]

    def since(self, before: Counters) -> Counters:
        hops = {hop: count - before.hops.get(hop, 0) for hop, count in self.hops.items()}
        return Counters(
            self.sent - before.sent,
            self.programmed - before.programmed,
            self.flushes - before.flushes,
            hops,
        )


class Served:
    """A served image and the file system on it."""

    def __init__(
        self, onefold: str, image: Path, folder: Path, *, volume: bool, options: tuple[str, ...] = ()
    ) -> None:
        self.onefold, self.image, self.volume, self.options = onefold, image, volume, options
        self.fuse, self.mount, self.log = folder / "fuse", folder / "mount", folder / "log"
        for path in (self.fuse, self.mount):
            path.mkdir(exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def __enter__(self) -> Served:
        kind = ["volume", "serve"] if self.volume else ["ssd", "serve", "--latency", "none"]
        command = [self.onefold, *kind, str(self.image), "--fuse", str(self.fuse), *self.options]
        log = self.log.open("w")
        self.server = subprocess.Popen(
            [*command, "--ui", f"127.0.0.1:{self.port}"], stdout=log, stderr=log
        )
        for _ in range(300):
            if (self.fuse / "disk").exists():
                break
            if self.server.poll() is not None:
                sys.exit(f"factor: {self.log.read_text()}")
            time.sleep(0.1)
        command = ["losetup", "--find", "--show", "--direct-io=on", str(self.fuse / "disk")]
        self.loop = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.mount], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", self.loop], check=False)
        time.sleep(0.2)
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()

    def count(self) -> Counters:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/stats") as answer:
            stats = json.load(answer)
        pages = stats["device"]["nand_written_pages"]
        hops = {f"flash {cause}": count * PAGE_BYTES for cause, count in pages.items()}
        volume = stats["device"].get("volume") or {}
        hops |= {f"log {cause}": count for cause, count in volume.get("sent_bytes", {}).items()}
        front = stats["frontends"]["fuse"]
        return Counters(
            front["write"]["bytes"], sum(pages.values()) * PAGE_BYTES, front["flush"]["requests"], hops
        )

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        run("mount", self.loop, self.mount)
        yield self.mount
        run("umount", self.mount)


def sqlite(folder: Path, rng: random.Random, journal: str, synchronous: str, count: int) -> None:
    """One row in each transaction, at random places of a table of 40 MB."""
    base = sqlite3.connect(folder / "db", isolation_level=None)
    base.execute(f"pragma journal_mode={journal}")
    base.execute("create table if not exists t (id integer primary key, data blob)")
    base.execute("begin")
    for key in range(40000):
        base.execute("insert or replace into t values (?, ?)", (key, rng.randbytes(900)))
    base.execute("commit")
    base.execute(f"pragma synchronous={synchronous}")
    for _ in range(count):
        base.execute("update t set data = ? where id = ?", (rng.randbytes(900), rng.randrange(40000)))
    base.close()


def fio(folder: Path, rng: random.Random, size: str, *options: str) -> None:
    job = ["fio", "--name=job", "--rw=randwrite", "--bs=4k", "--size=128M", f"--io_size={size}"]
    job += [f"--directory={folder}", f"--randseed={rng.randrange(1 << 30)}", "--refill_buffers"]
    run(*job, *options)


def sources(folder: Path, _: random.Random) -> None:
    """The sources of this repository, unpacked twice, and one copy committed."""
    archive = folder.parent / "sources.tar"
    run("git", "-C", SOURCE, "archive", "-o", archive, "HEAD")
    for copy in ("one", "two"):
        (folder / copy).mkdir()
        run("tar", "-xf", archive, "-C", folder / copy)
    tree = folder / "one"
    run("git", "init", "-q", cwd=tree)
    run("git", "add", "-A", cwd=tree)
    run("git", "-c", "user.name=factor", "-c", "user.email=factor@localhost", "commit", "-qm", "x", cwd=tree)


PROGRAMS: dict[str, Callable[[Path, random.Random], None]] = {
    "sqlite-wal-normal": lambda folder, rng: sqlite(folder, rng, "wal", "normal", 20000),
    "sqlite-wal-full": lambda folder, rng: sqlite(folder, rng, "wal", "full", 4000),
    "sqlite-journal-full": lambda folder, rng: sqlite(folder, rng, "delete", "full", 2000),
    "fio-fsync-1": lambda folder, rng: fio(folder, rng, "12M", "--fsync=1"),
    "fio-fsync-8": lambda folder, rng: fio(folder, rng, "48M", "--fsync=8"),
    "fio-fsync-64": lambda folder, rng: fio(folder, rng, "96M", "--fsync=64"),
    "fio-direct-qd32": lambda folder, rng: fio(
        folder, rng, "96M", "--direct=1", "--ioengine=libaio", "--iodepth=32"
    ),
    "fio-buffered": lambda folder, rng: fio(folder, rng, "192M"),
    "tar-git": sources,
}


def make_aged(options: argparse.Namespace, drive: str, layout: str) -> Path:
    """A drive of 1 GiB with a file system of 400 MiB of files, all overwritten once at random."""
    image = options.folder / f"{drive}-{layout}.img"
    if image.exists():
        return image
    fresh = image.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    run(options.onefold, "ssd", "create", fresh, "--preset", drive, "--size", "1GiB")
    arguments = LAYOUTS[layout]
    if arguments is not None:
        run(options.onefold, "volume", "create", fresh, *arguments)
    with Served(options.onefold, fresh, options.folder, volume=arguments is not None) as served:
        run("mkfs.ext4", "-q", "-F", served.loop)
        with served.mounted() as folder:
            job = ["fio", "--name=old", f"--directory={folder}", "--size=100M", "--numjobs=4", "--direct=1"]
            run(*job, "--rw=write", "--bs=1M", "--refill_buffers")
            run(*job, "--rw=randwrite", "--bs=4k", "--refill_buffers", "--ioengine=libaio", "--iodepth=16")
    fresh.rename(image)
    return image


def limit(onefold: str, tape: Path) -> float:
    """Bytes of whole units for each byte that was written: one is begun anew after each flush."""
    rows = tape.with_suffix(".csv")
    run(onefold, "trace", "convert", tape, "--to", "onefold-csv", "-o", rows)
    sent = programmed = pending = 0
    with rows.open(newline="") as lines:
        for row in csv.DictReader(lines):
            written = int(row["nsect"] or 0) * 512 if row["op"] == "W" else 0
            sent, pending = sent + written, pending + written
            if row["op"] == "F" or "fua" in row["flags"].lower():
                programmed, pending = programmed + math.ceil(pending / UNIT_BYTES), 0
    tape.unlink()
    rows.unlink()
    return (programmed + math.ceil(pending / UNIT_BYTES)) * UNIT_BYTES / sent


def measure(
    options: argparse.Namespace, aged: Path, layout: str, program: str
) -> tuple[Counters, float | None]:
    image, tape = options.folder / "cell.img", options.folder / "cell.oft"
    for path in (image, tape):
        path.unlink(missing_ok=True)
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", aged, image], check=True)
    volume = LAYOUTS[layout] is not None
    record = () if volume else ("--record", str(tape))
    with Served(options.onefold, image, options.folder, volume=volume, options=record) as served:
        with served.mounted() as folder:
            run("sync")
            before = served.count()
            work = folder / "work"
            work.mkdir()
            PROGRAMS[program](work, random.Random(options.seed))
        counted = served.count().since(before)
    image.unlink()
    return counted, None if volume else limit(options.onefold, tape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--onefold", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for images; aged ones are kept there")
    parser.add_argument("--drive", action="append", help="presets (default: qlc-16k and tlc)")
    parser.add_argument("--layout", action="append", choices=LAYOUTS)
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="all counts, as JSON")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results = []
    for drive in options.drive or ["qlc-16k", "tlc"]:
        layouts = options.layout or list(LAYOUTS)
        columns = [*layouts, "limit"] if "bare" in layouts else layouts
        print(f"\n| {drive} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}", flush=True)
        logs = dict.fromkeys(columns, 0.0)
        programs = options.program or list(PROGRAMS)
        for program in programs:
            row = dict.fromkeys(columns, math.nan)
            for layout in layouts:
                aged = make_aged(options, drive, layout)
                counted, least = measure(options, aged, layout, program)
                row[layout] = counted.programmed / counted.sent
                row |= {"limit": least} if least else {}
                cell = {"drive": drive, "layout": layout, "program": program, "limit": least}
                results.append(cell | vars(counted))
            for column, factor in row.items():
                logs[column] += math.log(factor) / len(programs)
            print(f"| {program} | {' | '.join(f'{factor:.2f}' for factor in row.values())} |", flush=True)
        means = " | ".join(f"{math.exp(log):.2f}" for log in logs.values())
        print(f"| geometric mean | {means} |", flush=True)
        if options.output:
            options.output.write_text(json.dumps(results, indent=1) + "\n")
    shutil.rmtree(options.folder / "fuse", ignore_errors=True)


if __name__ == "__main__":
    main()
