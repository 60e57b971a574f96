#!/usr/bin/env python3
"""Cost of programming a copy only when it was read: a model of the queues of the dies in collection, beside the runs.

    scripts/die_queues.py [--ahead PAGES] [--victims N] [--seed N]

Prints the two tables of docs/papers/wu2022.md, "What the numbers are of". The orders of the copies:

    slot by slot   read and program of a copy are queued at their dies before those of the next; the order of Onefold
    read ahead     the reads of PAGES copies are queued, then their programs
    no wait        slot by slot, but a program does not wait for its read, as in public FEMU

The model takes the write amplification, the share of remaps and the bandwidth that was measured from the tables in
docs/papers/results. Times and queue are those of the studies. Only the table of one eighth has the share of remaps, which
serves for every scale. Each page of a victim is valid with the same chance. A victim is emptied at once, and pages go to
the dies in turn. The model has no map, no checkpoints, no upkeep of logs, and one look-up: GN with 80 MB reads the whole
log at 50 ns for 64 B.
"""

import argparse
import csv
import heapq
import random
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).resolve().parent.parent / "docs/papers/results"
# Microseconds, and pages of a block.
READ, PROGRAM, ERASE, PAGES = 50.0, 500.0, 5000.0, 1024
PAGE_BYTES = 4096
FULL_DIES = 16
LOOKUP_GN = 80 * 2**20 / 64 * 0.05
# Victims before those that count.
WARM_UP = 2


@dataclass(frozen=True)
class Scale:
    """A part of the drive, and how it hashes. Times are in microseconds: of a hash, and of an append to the log."""

    name: str
    study: str
    workload: str
    dies: int
    hash: float
    append: float
    one_unit: bool = False

    def row(self, scheme: str, log_mb: int) -> dict[str, str]:
        return find(self.study, self.workload, scheme, log_mb * self.dies / FULL_DIES)


SMALL = Scale("one sixteenth, side by side", "small", "randw", 1, 32.0, 8.0)
EIGHTH = Scale("one eighth, side by side", "fig5", "randw-free", 2, 256.0, 4.0)
FULL = Scale("full size, side by side", "fig5-full", "randw-free", 16, 32.0, 0.5)
EIGHTH_UNIT = Scale("one eighth, one hash unit", "fig5", "randw", 2, 256.0, 4.0, one_unit=True)


@dataclass(frozen=True)
class Order:
    """How many copies are read before they are programmed, and whether a program waits for its read."""

    ahead: int
    waits: bool


def find(study: str, workload: str, scheme: str, log_mib: float) -> dict[str, str]:
    with (TABLES / f"wu2022-{study}.csv").open() as file:
        key = (workload, scheme, str(round(log_mib * 2**20)))
        return next(row for row in csv.DictReader(file) if (row["workload"], row["label"], row["size_bytes"]) == key)


def model(scale: Scale, scheme: str, log_mb: int, order: Order, options: argparse.Namespace, lookup: float) -> float:
    """Bandwidth in MB/s."""
    share = float(find("fig5", "randw", scheme, log_mb / 8)["dedup_share"])
    programs = float(scale.row(scheme, log_mb)["waf"]) / (1 - share)
    valid = 1 - 1 / programs
    chance = random.Random(options.seed)
    slots = scale.dies * PAGES
    dies = [0.0] * scale.dies  # when each is free
    requests = [0.0] * (2 * scale.dies)  # when each is done
    copied = written = pages = 0
    now = began = hashed = 0.0
    for victim in range(WARM_UP + options.victims):
        if victim == WARM_UP:
            began, pages = now, 0
        start = now + lookup
        copies = [slot % scale.dies for slot in range(slots) if chance.random() < valid]
        for first in range(0, len(copies), order.ahead):
            batch = copies[first : first + order.ahead]
            read = []
            for die in batch:
                dies[die] = max(dies[die], start) + READ
                read.append(dies[die])
            for done in read:
                die = copied % scale.dies
                dies[die] = max(dies[die], done if order.waits else start) + PROGRAM
                copied += 1
        dies = [max(free, start) + ERASE for free in dies]
        room = round(slots * (1 - valid))
        while room > 0:
            now = max(now, heapq.heappop(requests))
            pages += 1
            ready = now
            if scheme != "NoRemap":
                hashed = (max(hashed, now) if scale.one_unit else now) + scale.hash
                ready = hashed
            if chance.random() < share:
                done = ready + scale.append
            else:
                die = written % scale.dies
                dies[die] = done = max(dies[die], ready) + PROGRAM
                written += 1
                room -= 1
            heapq.heappush(requests, done)
    return pages * PAGE_BYTES / (now - began)


def bandwidths(scale: Scale, scheme: str, log_mb: int, options: argparse.Namespace, lookup: float = 0.0) -> list[float]:
    """In MB/s: measured, and by the model in the three orders."""
    orders = (Order(1, waits=True), Order(options.ahead, waits=True), Order(1, waits=False))
    measured = float(scale.row(scheme, log_mb)["bandwidth"])
    return [measured, *(model(scale, scheme, log_mb, order, options, lookup) for order in orders)]


def head(what: str, options: argparse.Namespace) -> None:
    print(f"| {what} | measured | model: slot by slot | {options.ahead} pages read ahead | no wait |")
    print("|---|---|---|---|---|")


def main() -> None:
    parser = argparse.ArgumentParser(prog="die_queues", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ahead", type=int, default=16)
    parser.add_argument("--victims", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    head("NoRemap and Opt in MB/s; Opt / NoRemap", options)
    for scale in (SMALL, EIGHTH, FULL, EIGHTH_UNIT):
        pairs = zip(bandwidths(scale, "NoRemap", 80, options), bandwidths(scale, "Opt", 80, options))
        print(f"| {scale.name} | {' | '.join(f'{none:.1f} and {opt:.1f}; {opt / none:.2f}' for none, opt in pairs)} |")
    print()
    head("bandwidth of one over another", options)
    for scale in (EIGHTH_UNIT, EIGHTH):
        for log_mb in (2, 10):
            pairs = zip(bandwidths(scale, "LH", log_mb, options), bandwidths(scale, "GF", log_mb, options))
            print(f"| LH / GF, {log_mb} MB, {scale.name} | {' | '.join(f'{lh / gf:.2f}' for lh, gf in pairs)} |")
    for scale in (EIGHTH_UNIT, FULL):
        pairs = zip(bandwidths(scale, "Opt", 80, options), bandwidths(scale, "GN", 80, options, LOOKUP_GN))
        print(f"| Opt / GN, 80 MB, {scale.name} | {' | '.join(f'{opt / gn:.2f}' for opt, gn in pairs)} |")


if __name__ == "__main__":
    main()
