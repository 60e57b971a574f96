#!/usr/bin/env python3
"""What a tape costs a program: the same work on four disks with ext4, in turns.

    scripts/bench_tape.py [ROUNDS]      5 unless given

plain     a file on tmpfs behind a loop device
try       under `onefold try`
served    an emulated SSD behind FUSE and a loop device, its image on tmpfs
taped     the same, which keeps a tape on tmpfs

fio writes 4 KiB at random, each with an fsync; SQLite inserts rows, a transaction each, with its defaults. Prints the median of
seconds, and of the ratios of one turn with the lowest and the highest. Needs root, FUSE and loop devices. ONEFOLD is the
binary to use.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZE = "512MiB"
SQLITE = """
import sqlite3
store = sqlite3.connect("db", isolation_level=None)
store.execute("create table t(a integer primary key, b text)")
for _ in range(3000):
    store.execute("insert into t(b) values(?)", ("x" * 200,))
"""
FIO = "fio --name=load --filename=f --size=128m --io_size=40m --rw=randwrite --bs=4k --fsync=1 --randseed=1"
# Says how long the work itself takes, without what is made ready.
TIMED = """
import subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(time.monotonic() - begin, flush=True)
"""
LOADS = {
    "fio": FIO.split() + ["--output-format=terse"],
    "sqlite": [sys.executable, "-c", SQLITE],
}


def run(*words: object, **more) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"bench-tape: {' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


@contextlib.contextmanager
def mounted(image: Path, folder: Path):
    loop = run("losetup", "--find", "--show", image).strip()
    try:
        run("mkfs.ext4", "-q", loop)
        folder.mkdir()
        run("mount", loop, folder)
        try:
            yield folder
        finally:
            run("umount", folder)
    finally:
        run("losetup", "--detach", loop)


def timed(load: list[str], folder: Path) -> float:
    return float(run(sys.executable, "-c", TIMED, *load, cwd=folder))


def plain(_onefold: str, load: list[str], work: Path) -> float:
    image = work / "plain.img"
    run("truncate", "-s", SIZE.removesuffix("iB"), image)
    with mounted(image, work / "mnt") as folder:
        return timed(load, folder)


def tried(onefold: str, load: list[str], work: Path) -> float:
    options = ["--size", SIZE, "--drives", "none", "--states", 0, "--tape", work / "tape", "-o", work / "account"]
    run(onefold, "try", "--quiet", *options, "--", sys.executable, "-c", TIMED, *load)
    return float((work / "tape" / "stdout.log").read_text().split()[-1])


def served(onefold: str, load: list[str], work: Path, *more: object) -> float:
    image, fuse = work / "disk.img", work / "fuse"
    run(onefold, "ssd", "create", image, "--preset", "tlc", "--size", SIZE)
    fuse.mkdir()
    server = subprocess.Popen([onefold, "ssd", "serve", "--quiet", "--latency", "none", image, "--fuse", fuse, *more])
    try:
        while not (fuse / "disk").exists():
            if server.poll() is not None:
                sys.exit("bench-tape: the server ended")
            time.sleep(0.01)
        with mounted(fuse / "disk", work / "mnt") as folder:
            return timed(load, folder)
    finally:
        # The kernel lets go of the file a moment after its loop device is gone.
        time.sleep(0.2)
        server.terminate()
        server.wait()


def taped(onefold: str, load: list[str], work: Path) -> float:
    return served(onefold, load, work, "--tape", work / "tape")


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    if os.geteuid() != 0:
        print("skipped: what a tape costs (it needs root)")
        return 0
    onefold = os.environ.get("ONEFOLD")
    if onefold is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "--package", "onefold"], cwd=ROOT, check=True)
        onefold = str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "onefold")
    ways = {"plain": plain, "try": tried, "served": served, "taped": taped}
    for load, command in LOADS.items():
        seconds = {way: [] for way in ways}
        for _ in range(rounds):
            for way, measure in ways.items():
                with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="bench-tape-") as work:
                    seconds[way].append(measure(onefold, command, Path(work)))
        shown = ", ".join(f"{way} {statistics.median(all_of):.2f} s" for way, all_of in seconds.items())
        print(f"{load}: {shown}")
        for way, base in (("try", "plain"), ("taped", "served")):
            ratios = sorted(one / other for one, other in zip(seconds[way], seconds[base]))
            print(f"  {way} / {base}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
