#!/usr/bin/env python3
"""Counts the instructions that the buffer policies take per page and the simulator per request, and fails if one takes
more than in the committed table, scripts/instructions.json: 15 % more of a policy, 10 % of the simulator. Unlike times,
counts do not depend on the machine or on what else runs, so that a test may rely on them.

    scripts/instructions.py            compare with the table; skipped loudly without valgrind
    scripts/instructions.py --renew    count, and write the table
    scripts/instructions.py --only per_request    the simulator alone; per_page: the policies alone

The counts are those of valgrind (callgrind) for crates/buffer/examples/instructions.rs, set-up not
counted, and for crates/sim/examples/requests.rs, where two lengths of a run are subtracted. They belong
to one architecture and to a build without options for the processor at hand; another compiler may move
them a little. Renew the table when something became cheaper, or dearer on purpose, and say why in the
commit.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts/instructions.json"
POLICIES = ["lru", "2l", "pt-lru", "vbbms", "aoi", "s3-fifo", "arc", "2q", "cflru"]
LOADS = ["read", "write", "collect"]
# What is lost at most: what the specifications ask to be caught (buffer.md, section 4; speed.md).
MORE_MOST = {"per_page": 0.15, "per_request": 0.10}
# A gain is no failure, but a table that is far too high no longer guards anything.
LESS_NOTED = 0.15
# The reader of the vDSO that the simulator's clock would use crashes under valgrind. The policies have no clock, but with
# the same flags what both need is built once.
FLAGS = ["--cfg", "rustix_use_libc"]
# Crates of others are not what is guarded: generic code of theirs is built where it is used, and the rest is not in the loops.
# Nor are these of ours: they configure a drive, or lie above one.
NOT_COUNTED = ['"*"', *(f"onefold-{name}" for name in ["config", "journal", "modes", "tracefile", "volume", "zoned"])]
# valgrind finds the counted function without line numbers. Optimisation across crates takes a third of the build, and counts
# change by 1 % at most.
PROFILE = ["profile.profiling.debug=false", "profile.profiling.lto=\"off\"", *(f"profile.profiling.package.{name}.opt-level=0" for name in NOT_COUNTED)]


def build(package: str, example: str) -> Path:
    """Builds an example as everybody's processor runs it, and returns its path."""
    environment = {k: v for k, v in os.environ.items() if "RUSTFLAGS" not in k}
    # callgrind finds the counted function by its name, which a release build does not keep.
    command = ["cargo", "build", "--quiet", "--profile=profiling", "--locked", "-p", package]
    command += ["--example", example]
    for setting in [f"build.rustflags={json.dumps(FLAGS)}", *PROFILE]:
        command += ["--config", setting]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "profiling/examples" / example


def count(program: Path, arguments: list[str]) -> list[tuple[list[str], int]]:
    """The words that a program prints for each call of its function `measured`, and the instructions of the call."""
    measured = f"{program.name}::measured"
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [f"--toggle-collect={measured}", f"--dump-after={measured}", str(program)]
        run = subprocess.run(command + arguments, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"instructions: valgrind failed:\n{run.stderr}{run.stdout}")
        calls = []
        # Each call of the function leaves a file; they are numbered from 1.
        for number, line in enumerate(run.stdout.splitlines(), start=1):
            text = Path(f"{folder}/out.{number}").read_text()
            total = re.search(r"^(?:totals|summary): (\d+)$", text, re.MULTILINE)
            if total is None or int(total[1]) == 0:
                sys.exit(f"instructions: nothing was counted for {line}")
            calls.append((line.split(), int(total[1])))
        return calls


def per_page() -> dict[str, float]:
    """Instructions of the buffer policies per page, by policy and workload."""
    calls = count(build("onefold-buffer", "instructions"), POLICIES)
    return {f"{policy} {load}": round(total / int(pages), 1) for (policy, load, pages), total in calls}


def per_request() -> dict[str, float]:
    """Instructions of the simulator per request, by load: of what a long run does beyond a short one."""
    calls = count(build("onefold-sim", "requests"), LOADS)
    counts = {}
    for ((load, few), short), ((_, many), long) in zip(calls[::2], calls[1::2], strict=True):
        counts[load] = round((long - short) / (int(many) - int(few)), 1)
    return counts


COUNTED = {"per_page": per_page, "per_request": per_request}


def compiler() -> str:
    """Version of the compiler that builds the example."""
    run = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.split()[1]


def compare(table: dict, found: dict[str, dict[str, float]]) -> int:
    """Prints every count beside that of the table; the exit code."""
    slower = []
    for unit, counts in found.items():
        print(f"instructions {unit.replace('_', ' '):18} {'table':>9} {'now':>9}")
        for name, now in counts.items():
            before = table[unit].get(name)
            if before is None:
                slower.append(f"{name} is not in the table")
                continue
            change = now / before - 1
            note = "  TOO MANY" if change > MORE_MOST[unit] else ""
            note = note or ("  fewer: renew the table" if change < -LESS_NOTED else "")
            print(f"{name:31} {before:9.1f} {now:9.1f} {change:+7.1%}{note}")
            if change > MORE_MOST[unit]:
                slower.append(f"{name}: {before} -> {now} ({change:+.1%}, at most {MORE_MOST[unit]:.0%})")
    if not slower:
        return 0
    print(f"instructions: too many more than in {TABLE.relative_to(ROOT)}:", file=sys.stderr)
    for line in slower:
        print(f"  {line}", file=sys.stderr)
    if table["rustc"] != compiler():
        print(f"the table is of rustc {table['rustc']}, this is {compiler()}", file=sys.stderr)
    print("find out why; if it has to be so, run scripts/instructions.py --renew", file=sys.stderr)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--renew", action="store_true", help="write the table")
    parser.add_argument("--only", choices=COUNTED, help="count one of the two")
    arguments = parser.parse_args()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    machine = platform.machine()
    if shutil.which("valgrind") is None:
        print("skipped: instruction counts (valgrind is missing; scripts/setup.sh installs it)")
        return 0
    if not arguments.renew and table.get("machine") != machine:
        print(f"skipped: instruction counts (the table is for {table.get('machine')}, this is {machine})")
        return 0
    wanted = [arguments.only] if arguments.only else list(COUNTED)
    found = {unit: COUNTED[unit]() for unit in wanted}
    if arguments.renew:
        table = {**table, "machine": machine, "rustc": compiler(), **found}
        TABLE.write_text(json.dumps(table, indent=2) + "\n")
        print(f"wrote {TABLE.relative_to(ROOT)}")
        return 0
    return compare(table, found)


if __name__ == "__main__":
    sys.exit(main())
