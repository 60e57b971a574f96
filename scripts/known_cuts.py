#!/usr/bin/env python3
"""Programs of which it is known what a power cut does to them: `onefold crash explore` has to find that, and nothing else.

    scripts/known_cuts.py [short|full|STATES] [CASE...]      all cases, unless some are named (a prefix is enough)

STATES is the number of states of each case: 60 for short, 1,000 for full. Programs and checks are in scripts/known-cuts; a check
ends with 1 if something is gone that was announced, and with 2 if something is damaged. Prints a line per case: how many states
failed, and the first finding. Ends with 1 if it is not what is known. Needs root, FUSE and loop devices; a case whose program is
missing is skipped, which ONEFOLD_REQUIRE=known-cuts makes an error. ONEFOLD is the binary to use.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "scripts" / "known-cuts"
BUDGETS = {"short": 60, "full": 1000}
# What the check of a failing state may say, by its exit code.
KEPT, LOST, DAMAGED = set(), {1}, {1, 2}


@dataclass(frozen=True)
class Case:
    name: str
    # Program with its argument, and check; without one mounting and the file system's own check count.
    program: str
    check: str
    # Exit codes of the check in failing states, of which there have to be some unless it is empty.
    fails: set
    tools: str = ""
    options: str = ""
    prepare: str = ""
    # Options of the search.
    search: str = ""
    # Whether the program keeps the tape itself, of a device that it serves.
    is_served: bool = False
    # Whether it uses onefold-sqlite.
    needs_extension: bool = False
    # Share of the states: those of a server that has to start take long.
    share: float = 1.0
    # Whether a short budget is enough to find it.
    is_frequent: bool = True


SQLITE = {"check": "sqlite-check.sh", "tools": "sqlite3"}
EXTENSION = {"check": "sqlite-onefold-check.sh", "tools": "sqlite3", "needs_extension": True}
ROCKSDB = {"check": "rocksdb-check.sh", "tools": "db_bench ldb"}
GIT = {"check": "git-check.sh", "tools": "git"}
RENAME = "rename-check.sh"
DELAYED = "--mount noauto_da_alloc"
XFS = "--fs xfs"


def own(kind: str) -> Case:
    return Case(
        f"onefold-{kind}",
        f"own.sh run {kind}",
        f"own.sh check {kind}",
        KEPT,
        prepare=f"own.sh prepare {kind}",
        options="--size 2GiB",
        share=0.3,
    )


CASES = [
    Case("sqlite-full", "sqlite.sh FULL", fails=LOST, **SQLITE),
    Case("sqlite-extra", "sqlite.sh EXTRA", fails=KEPT, **SQLITE),
    Case("sqlite-wal-normal", "sqlite-wal.py NORMAL", fails=LOST, is_frequent=False, **SQLITE),
    Case("sqlite-wal-full", "sqlite-wal.py FULL", fails=KEPT, **SQLITE),
    Case("sqlite-onefold", "sqlite-onefold.sh FULL", fails=KEPT, **EXTENSION),
    Case("sqlite-onefold-paired", "sqlite-onefold.sh FULL plain paired", fails=KEPT, **EXTENSION),
    Case("sqlite-onefold-xfs", "sqlite-onefold.sh FULL reflink", fails=KEPT, options="--fs xfs --mkfs=-ssize=4096", **EXTENSION),
    Case("rename-ext4", "rename.sh plain", RENAME, DAMAGED, options=DELAYED),
    Case("rename-ext4-fsync", "rename.sh sync", RENAME, KEPT, options=DELAYED),
    Case("rename-xfs", "rename.sh plain", RENAME, DAMAGED, tools="mkfs.xfs", options=XFS),
    Case("rename-xfs-fsync", "rename.sh sync", RENAME, KEPT, tools="mkfs.xfs", options=XFS),
    Case("rocksdb-sync", "rocksdb.sh 1", fails=KEPT, **ROCKSDB),
    Case("rocksdb-no-sync", "rocksdb.sh 0", fails=LOST, is_frequent=False, **ROCKSDB),
    Case("git-init", "git.sh commit all", fails=DAMAGED, **GIT),
    Case("git", "git.sh commit", fails=DAMAGED, prepare="git.sh init", **GIT),
    Case("git-fsync-all", "git.sh commit all", fails=LOST, is_frequent=False, prepare="git.sh init", **GIT),
    Case("sed", "sed.sh", "sed-check.sh", LOST, is_frequent=False),
    Case("sed-delayed", "sed.sh", "sed-check.sh", DAMAGED, options=DELAYED),
    Case("postgresql", "postgresql.sh", "postgresql-check.sh", KEPT, tools="psql setpriv", search="--jobs 1", share=0.1),
    own("volume"),
    own("dmz"),
    Case("ext4-on-volume", "own.sh tape volume", "", KEPT, is_served=True),
    Case("ext4-on-dmz", "own.sh tape dmz", "", KEPT, is_served=True),
]


def shell(words: str) -> str:
    """A program or check of this folder as a command."""
    program, *arguments = words.split()
    interpreter = sys.executable if program.endswith(".py") else "sh"
    return " ".join([interpreter, str(FOLDER / program), *arguments])


def run(*words: object, codes=(0,), folder=None) -> None:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, cwd=folder)
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def record(case: Case, onefold: str, tape: Path) -> None:
    if case.is_served:
        run(*shell(case.program).split(), tape, folder=tape.parent)
        return
    prepare = ["--prepare", shell(case.prepare)] if case.prepare else []
    options = f"--size 1GiB {case.options}" if "--size" not in case.options else case.options
    common = ["--quiet", "--drives", "none", "--states", 0, "--tape", tape, "-o", tape.parent / "account"]
    run(onefold, "try", *options.split(), *prepare, *common, "--", *shell(case.program).split())


def explore(case: Case, states: int, onefold: str, folder: Path) -> dict:
    """Result of the search in the states of one run."""
    tape, result = folder / "tape", folder / "result.json"
    record(case, onefold, tape)
    check = ["--check", shell(case.check)] if case.check else []
    search = ["--states", states, *case.search.split(), "--format", "json", "-o", result]
    run(onefold, "crash", "explore", tape, *check, *search, codes=(0, 7))
    return json.loads(result.read_text())


def judge(case: Case, result: dict, is_short: bool) -> str | None:
    """What is not as known."""
    codes = {state.get("exit_code") for state in result["failing"]}
    if strange := codes - case.fails:
        return f"a state fails with exit code {strange.pop()}"
    if case.fails and not codes and (case.is_frequent or not is_short):
        return "no state fails"
    if any(finding["cause"] == "unsteady" for finding in result["findings"]):
        return "the check is unsteady"
    return None


def attempt(case: Case, states: int, is_short: bool, onefold: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="known-cuts-") as folder:
        try:
            result = explore(case, max(1, int(states * case.share)), onefold, Path(folder))
        except RuntimeError as error:
            print(f"FAIL  {case.name}: {error}", flush=True)
            return False
    counted = result["states"]
    wrong = judge(case, result, is_short)
    verdict = f"FAIL  {case.name}: {wrong}:" if wrong else f"PASS  {case.name}:"
    failing = counted["failing"]
    print(f"{verdict} {failing} of {counted['tried']} states fail, {len(result['findings'])} findings")
    if failing:
        print(f"      {result['findings'][0]['sentence']}")
    sys.stdout.flush()
    return wrong is None


def find_extension(onefold: Path) -> bool:
    """Tells programs of this folder where onefold-sqlite is: beside `onefold`."""
    library = "libonefold_sqlite.so"
    found = [path for path in (onefold.parent / library, onefold.parent / "deps" / library) if path.exists()]
    command = onefold.parent / "onefold-sqlite"
    if not found or not command.exists():
        return False
    os.environ["ONEFOLD_SQLITE"], os.environ["ONEFOLD_SQLITE_LIBRARY"] = str(command), str(found[0])
    return True


def main() -> int:
    budget, *names = sys.argv[1:] or ["full"]
    if budget not in BUDGETS and not budget.isdecimal():
        print(__doc__, file=sys.stderr)
        return 2
    states = BUDGETS.get(budget) or int(budget)
    is_required = "known-cuts" in os.environ.get("ONEFOLD_REQUIRE", "").split(",")
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        print("skipped: known power cuts (they need root, FUSE and loop devices)")
        return int(is_required)
    onefold = os.environ.get("ONEFOLD")
    if onefold is None:
        packages = ["--package", "onefold", "--package", "onefold-sqlite"]
        subprocess.run(["cargo", "build", "--release", "--locked", *packages], cwd=ROOT, check=True)
        target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
        onefold = str(Path(target) / "release" / "onefold")
    # Programs of this folder run it too.
    os.environ["ONEFOLD"] = onefold = str(Path(onefold).resolve())
    has_extension = find_extension(Path(onefold))
    failed = skipped = 0
    for case in CASES:
        if names and not any(case.name.startswith(name) for name in names):
            continue
        if missing := [tool for tool in case.tools.split() if shutil.which(tool) is None]:
            print(f"SKIP  {case.name}: {' '.join(missing)} is missing")
            skipped += 1
        elif case.needs_extension and not has_extension:
            print(f"SKIP  {case.name}: onefold-sqlite and its library are not beside {onefold}")
            skipped += 1
        else:
            failed += not attempt(case, states, budget == "short", onefold)
    print(f"known-cuts: {failed} failed, {skipped} skipped")
    return int(failed > 0 or (is_required and skipped > 0))


if __name__ == "__main__":
    sys.exit(main())
