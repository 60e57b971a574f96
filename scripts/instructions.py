#!/usr/bin/env python3
"""Counts the instructions that the buffer policies take per page, and fails if one takes more than 15 %
above the committed table, scripts/instructions.json. Unlike times, counts do not depend on the machine
or on what else runs, so that a test may rely on them.

    scripts/instructions.py            compare with the table; skipped loudly without valgrind
    scripts/instructions.py --renew    count, and write the table

The counts are those of valgrind (callgrind) for crates/buffer/examples/instructions.rs, set-up not
counted. They belong to one architecture and to a build without options for the processor at hand;
another compiler may move them a little. Renew the table when a policy became cheaper, or dearer on
purpose, and say why in the commit.
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
# The specification asks that a loss of 15 % is caught (buffer.md, section 4).
MORE_MOST = 0.15
# A gain is no failure, but a table that is far too high no longer guards anything.
LESS_NOTED = 0.15
# The function that is counted.
COUNTED = "instructions::measured"


def build() -> Path:
    """Builds the example as everybody's processor runs it, and returns its path."""
    environment = {k: v for k, v in os.environ.items() if "RUSTFLAGS" not in k}
    # callgrind finds the counted function by its name, which a release build does not keep.
    command = ["cargo", "build", "--quiet", "--profile=profiling", "--locked", "-p", "onefold-buffer"]
    command += ["--example", "instructions", "--config", "build.rustflags=[]"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "profiling/examples/instructions"


def count(program: Path, policies: list[str]) -> dict[str, dict[str, float]]:
    """Instructions per page, by policy and workload."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [f"--toggle-collect={COUNTED}", f"--dump-after={COUNTED}", str(program)]
        run = subprocess.run(command + policies, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"instructions: valgrind failed:\n{run.stderr}{run.stdout}")
        lines = [line.split() for line in run.stdout.splitlines()]
        counts: dict[str, dict[str, float]] = {}
        # Each call of the function leaves a file; they are numbered from 1.
        for number, (policy, workload, pages) in enumerate(lines, start=1):
            text = Path(f"{folder}/out.{number}").read_text()
            total = re.search(r"^(?:totals|summary): (\d+)$", text, re.MULTILINE)
            if total is None or int(total[1]) == 0:
                sys.exit(f"instructions: nothing was counted for {policy} {workload}")
            counts.setdefault(policy, {})[workload] = round(int(total[1]) / int(pages), 1)
    return counts


def compiler() -> str:
    """Version of the compiler that builds the example."""
    run = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.split()[1]


def compare(table: dict, found: dict[str, dict[str, float]]) -> int:
    """Prints every count beside that of the table; the exit code."""
    slower = []
    expected = table["per_page"]
    print(f"instructions per page     {'table':>9} {'now':>9}")
    for policy, workloads in found.items():
        for workload, now in workloads.items():
            before = expected.get(policy, {}).get(workload)
            if before is None:
                slower.append(f"{policy} {workload} is not in the table")
                continue
            change = now / before - 1
            note = "  TOO MANY" if change > MORE_MOST else ""
            note = note or ("  fewer: renew the table" if change < -LESS_NOTED else "")
            print(f"{policy:12} {workload:12} {before:9.1f} {now:9.1f} {change:+7.1%}{note}")
            if change > MORE_MOST:
                slower.append(f"{policy} {workload}: {before} -> {now} ({change:+.1%})")
    if not slower:
        return 0
    print(f"instructions: more than {MORE_MOST:.0%} above {TABLE.relative_to(ROOT)}:", file=sys.stderr)
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
    arguments = parser.parse_args()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    machine = platform.machine()
    if shutil.which("valgrind") is None:
        print("skipped: instruction counts (valgrind is missing; scripts/setup.sh installs it)")
        return 0
    if not arguments.renew and table.get("machine") != machine:
        print(f"skipped: instruction counts (the table is for {table.get('machine')}, this is {machine})")
        return 0
    found = count(build(), POLICIES)
    if arguments.renew:
        table = {"machine": machine, "rustc": compiler(), "per_page": found}
        TABLE.write_text(json.dumps(table, indent=2) + "\n")
        print(f"wrote {TABLE.relative_to(ROOT)}")
        return 0
    return compare(table, found)


if __name__ == "__main__":
    sys.exit(main())
