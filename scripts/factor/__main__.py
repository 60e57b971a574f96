"""Measures what real programs write to flash: bytes programmed for each byte that the file system sent to its block device.

Each cell is a program on a file system on a loop device on a served image, on a copy of the same image: a drive alone, or with a
volume. The counters are the server's own, read before and after, with what `sync` and unmounting add.

    state   drive   files                                    then
    half    1 GiB   400 MiB                                  overwritten once at random, 4 KiB
    full    4 GiB   2,560 MiB, 80 % of what a volume exports 4 GiB of random overwrites of 4 to 64 KiB, O_DIRECT
                    (layout bare-full: 3,200 MiB, 80 % of the drive)

With --clocks each run is recorded and replayed in virtual time on the same image: `simulated` is what that programs / what was
programmed while serving, both from the start of the server to the end; `worst cause` is the cause that differs most from its own
counter, of those with a hundredth of the bytes or more, of flash and of the volume.

`limit` is what a drive without power-loss protection has to program at least: what the file system sent, rounded up to 16 KiB at each
flush, from a recording of the run. Needs root, FUSE, loop devices; a program that is not installed is left out and named.

    python3 scripts/factor --onefold target/release/onefold --folder /tmp/factor
    python3 scripts/factor ... --state half --drive tlc --layout bare --layout volume --program sqlite-wal-normal
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from programs import PROGRAMS, missing
from served import PAGE_BYTES, Counters, Served, run

UNIT_BYTES = 16384
# Arguments of `volume create` and of `volume serve`; `None`: no volume.
LAYOUTS: dict[str, tuple[list[str], list[str]] | None] = {
    "bare": None,
    "bare-full": None,
    "volume": ([], []),
    "volume-4k": (["--unit", "4KiB"], []),
    "volume-16k": (["--unit", "16KiB"], []),
    "hot-cold": ([], ["--hot-cold"]),
    "lz4": (["--compress", "lz4"], []),
    "zstd": (["--compress", "zstd"], []),
}
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


class Image:
    """A drive with a file system that was used, which every cell begins with."""

    def __init__(self, options: argparse.Namespace, drive: str, layout: str) -> None:
        self.onefold, self.folder, self.state = options.onefold, options.folder, options.state
        self.file_system, self.drive, self.volume = options.fs, drive, LAYOUTS[layout] is not None
        self.create, self.serve = LAYOUTS[layout] or ([], [])
        self.files = 3200 if layout == "bare-full" else 2560
        # What is served alike is made once.
        name = f"{'volume' if self.volume else layout}-{'-'.join(self.create)}".strip("-")
        self.path = self.folder / f"{self.state}-{self.file_system}-{drive}-{name}.img"

    def is_simulated(self) -> bool:
        """A simulation has no bytes that could be compressed."""
        return "--compress" not in self.create

    def served(self, image: Path, *options: str) -> Served:
        serve = (*self.serve, *options)
        return Served(self.onefold, image, self.folder, volume=self.volume, options=serve)

    def make(self) -> Path:
        if self.path.exists():
            return self.path
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        half = self.state == "half"
        size = ["--size", "1GiB"] if half else ["--size", "4GiB", "--set", "geometry.pages=32"]
        run(self.onefold, "ssd", "create", fresh, "--preset", self.drive, *size)
        if self.volume:
            run(self.onefold, "volume", "create", fresh, *self.create)
        with self.served(fresh, "--latency", "none") as served:
            run(*MAKE[self.file_system], served.loop)
            with served.mounted() as folder:
                self.age(folder)
        fresh.rename(self.path)
        return self.path

    def age(self, folder: Path) -> None:
        job = ["fio", "--name=old", f"--directory={folder}", "--direct=1", "--refill_buffers", "--randseed=7"]
        if self.state == "half":
            job += ["--size=100M", "--numjobs=4"]
            over = ["--bs=4k"]
        else:
            job += [f"--size={self.files}M"]
            over = ["--bsrange=4k-64k", "--blockalign=4k", "--io_size=4096M", "--norandommap"]
        run(*job, "--rw=write", "--bs=1M")
        run(*job, "--rw=randwrite", "--ioengine=libaio", "--iodepth=16", *over)


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
    rows.unlink()
    return (programmed + math.ceil(pending / UNIT_BYTES)) * UNIT_BYTES / sent


def simulated(options: argparse.Namespace, image: Path, tape: Path) -> dict[str, int]:
    """Bytes by hop and cause, as `Counters.hops`, in virtual time for what was recorded."""
    how = ("--set", f"run.latency={options.latency}", "--format", "json")
    result = json.loads(run(options.onefold, "sim", "run", "--image", image, "--trace", tape, *how))
    pages = {f"flash {cause}": count for cause, count in result["flash"]["program_pages"].items()}
    volume = result.get("volume") or {}
    pages |= {f"log {cause}": count for cause, count in volume.get("sent_pages", {}).items()}
    return {hop: count * PAGE_BYTES for hop, count in pages.items()}


def flash(hops: dict[str, int]) -> int:
    """Bytes programmed for any cause."""
    return sum(count for hop, count in hops.items() if hop.startswith("flash "))


def worst_cause(simulated: dict[str, int], served: dict[str, int]) -> tuple[str, float]:
    """The cause whose simulated bytes differ most from its served ones, and their ratio."""
    least = max(flash(served), 1) / 100
    ratios = {hop: simulated.get(hop, 0) / count for hop, count in served.items() if count >= least}
    return max(ratios.items(), key=lambda one: abs(one[1] - 1), default=("none", 1.0))


@dataclass
class Measured:
    """What a program came to."""

    counted: Counters
    limit: float
    seconds: float
    # Simulated / served, in all and of the worst cause; `None` if nobody asked.
    simulated: float | None
    worst: tuple[str, float] | None


def measure(options: argparse.Namespace, image: Image, program: str) -> Measured:
    """Runs a program on a copy of an image."""
    cell, tape = options.folder / "cell.img", options.folder / "cell.oft"
    for path in (cell, tape):
        path.unlink(missing_ok=True)
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", image.make(), cell], check=True)
    with image.served(cell, "--latency", options.latency, "--record", str(tape)) as served:
        with served.mounted() as folder:
            run("sync")
            before, begin = served.count(), time.monotonic()
            work = folder / "work"
            work.mkdir()
            PROGRAMS[program](work, random.Random(options.seed))
            run("sync")
            seconds = time.monotonic() - begin
        whole = served.count()
    ratio = worst = None
    if options.clocks and image.is_simulated():
        hops = simulated(options, image.path, tape)
        ratio, worst = flash(hops) / whole.programmed, worst_cause(hops, whole.hops)
    measured = Measured(whole.since(before), limit(options.onefold, tape), seconds, ratio, worst)
    for path in (cell, tape):
        path.unlink()
    return measured


def table(options: argparse.Namespace, drive: str, results: list[dict[str, object]]) -> None:
    layouts = options.layout or ["bare", "bare-full", "volume"][:: 2 if options.state == "half" else 1]
    columns = [*layouts, "limit"]
    if options.clocks:
        replayed = [layout for layout in layouts if Image(options, drive, layout).is_simulated()]
        columns += [f"{layout}: {what}" for layout in replayed for what in ("simulated", "worst cause")]
    print(f"\n| {drive}, {options.state}, {options.fs} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    logs, rows = dict.fromkeys(columns, 0.0), 0
    for program in options.program or PROGRAMS:
        if lacks := missing(program):
            print(f"skipped: {program} ({lacks} is missing)", flush=True)
            continue
        row: dict[str, float] = {}
        worst: dict[str, str] = {}
        for layout in layouts:
            measured = measure(options, Image(options, drive, layout), program)
            counted = measured.counted
            row[layout], row["limit"] = counted.programmed / counted.sent, measured.limit
            cell = {"drive": drive, "state": options.state, "fs": options.fs, "layout": layout}
            cell |= {"program": program, "limit": measured.limit, "seconds": round(measured.seconds, 2)}
            if measured.simulated is not None and measured.worst is not None:
                row[f"{layout}: simulated"] = cell["simulated"] = measured.simulated
                (cause, ratio) = cell["worst_cause"] = measured.worst
                row[f"{layout}: worst cause"] = ratio
                worst[f"{layout}: worst cause"] = f"{ratio:.3f} ({cause})"
            results.append(cell | vars(counted))
            if options.output:
                options.output.write_text(json.dumps(results, indent=1) + "\n")
        rows += 1
        for column, factor in row.items():
            logs[column] += math.log(factor)
        cells = (worst.get(column, f"{row[column]:.{3 if 'simulated' in column else 2}f}") for column in columns)
        print(f"| {program} | {' | '.join(cells)} |", flush=True)
    means = " | ".join(f"{math.exp(log / max(rows, 1)):.2f}" for log in logs.values())
    print(f"| geometric mean | {means} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--onefold", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for images; aged ones are kept there")
    parser.add_argument("--drive", action="append", help="presets (default: qlc-16k and tlc)")
    parser.add_argument("--state", choices=["half", "full"], default="full")
    parser.add_argument("--fs", choices=MAKE, default="ext4")
    parser.add_argument("--layout", action="append", choices=LAYOUTS)
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    parser.add_argument("--latency", choices=["model", "none"], default="model")
    parser.add_argument("--clocks", action="store_true", help="replay each run in virtual time as well")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="all counts, as JSON")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, object]] = []
    for drive in options.drive or ["qlc-16k", "tlc"]:
        table(options, drive, results)


if __name__ == "__main__":
    main()
