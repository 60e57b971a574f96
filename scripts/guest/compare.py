#!/usr/bin/env python3
"""Lays what the kernel target did under concurrent loads beside `onefold sim run` on the requests that reached it.

    scripts/guest/compare.py FOLDER ONEFOLD

FOLDER has `output` and `trace-ROW` of baseline.sh (RECORD=1). One line per row: MiB written to and read from both devices and
reclaims begun and completed, each as ours / the kernel's = ratio; more than 15 % off has a star. A reclaim that the kernel gives up and
begins again at once, because whoever wanted the zone did not run yet, counts once. Ours is the median of three replays, of which one is
1 % slower and one 1 % faster than the recording: which zone is free at which moment changes a single one. Ends with 1 if what is
written, or the reclaims completed, are off by more than a factor of two, unless both sides have next to nothing.
"""

import json
import statistics
import subprocess
import sys

CLOSE = 0.15
SPEEDS = (0.99, 1.0, 1.01)
# Not how many reclaims were begun: most are given up at once, as often as the scheduler lets them.
JUDGED = ("conv", "zns", "completed")
FIELDS = "user conv conv_flushes zns zns_flushes top started given_up weight journal again conv_read zns_read".split()


def simulated(onefold: str, trace: str, speed: float) -> dict[str, float]:
    command = [onefold, "sim", "run", "--preset", "dmz-guest", "--set", "run.mode=recorded", "--set", f"run.speedup={speed}"]
    command += ["--trace", trace, "--event", "Q", "--format", "json", "--quiet"]
    volume = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["zoned_volume"]
    regular, zoned = volume["devices"]
    moves = {name: found for name, found in volume["reclaims"].items() if name != "empty"}
    mib = 256
    return {
        "conv": sum(regular["sent_pages"].values()) / mib,
        "zns": sum(zoned["sent_pages"].values()) / mib,
        "conv_read": (regular["read_pages"] + regular["copy_read_pages"]) / mib,
        "zns_read": (zoned["read_pages"] + zoned["copy_read_pages"]) / mib,
        "started": sum(found["started"] for found in moves.values()),
        "completed": sum(found["completed"] for found in moves.values()),
    }


def cell(ours: float, kernel: float) -> tuple[str, bool]:
    """The cell, and whether it is out of bounds."""
    if max(ours, kernel) < 10:
        return f"{ours:.0f} / {kernel:.0f}", False
    ratio = ours / kernel if kernel else float("inf")
    star = "" if abs(ratio - 1) <= CLOSE else " *"
    return f"{ours:.0f} / {kernel:.0f} = {ratio:.2f}{star}", not 0.5 <= ratio <= 2


def main() -> int:
    folder, onefold = sys.argv[1:]
    columns = ["conv", "zns", "conv_read", "zns_read", "started", "completed"]
    print("| row | to the regular device | to the zoned one | from the regular one | from the zoned one | reclaims begun | completed |")
    print("|---|---|---|---|---|---|---|")
    bad = False
    with open(f"{folder}/output", encoding="utf-8") as output:
        for line in output:
            name, *values = line.split()
            kernel = dict(zip(FIELDS, map(float, values), strict=True))
            kernel["completed"] = kernel["started"] - kernel["given_up"]
            kernel["started"] -= kernel["again"]
            replays = [simulated(onefold, f"{folder}/trace-{name}", speed) for speed in SPEEDS]
            ours = {column: statistics.median(replay[column] for replay in replays) for column in columns}
            cells = [cell(ours[column], kernel[column]) for column in columns]
            bad |= any(out for column, (_, out) in zip(columns, cells, strict=True) if column in JUDGED)
            print("|", " | ".join([name, *(text for text, _ in cells)]), "|", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
