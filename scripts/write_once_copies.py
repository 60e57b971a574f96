#!/usr/bin/env python3
"""What a drive that sees copies saves under unmodified programs.

    scripts/write_once_copies.py [--onefold PATH] [--set KEY=VALUE].. [--only NAME] [--tree FOLDER] [--repository FOLDER]

Each row is a new drive of 1 GiB, served over FUSE with a loop device on it, and a new file system. A tree of files is written, the
caches are dropped, and a program runs: `cp -a`, `git clone`, a defragmenter, a balance. Pages are those that the drive counts
(`onefold ssd info`) from the start of the program until the file system is unmounted. Then the file system is checked, mounted again,
and every file is compared. Needs root, /dev/fuse and loop devices; a row whose program is missing is skipped.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECK = {
    "ext4": ["e2fsck", "-fn"],
    "xfs": ["xfs_repair", "-n"],
    "btrfs": ["btrfs", "check", "--check-data-csum"],
}


def run(*words: object, cwd: Path | None = None) -> str:
    """The output of a program that ends well."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def drop_caches() -> None:
    """What is read from now on comes from the drive."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def digests(tree: Path) -> dict[str, str]:
    """SHA-256 of every file of a tree, by its path in it."""
    files = (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Drive:
    """A served drive with a file system."""

    def __init__(self, options: argparse.Namespace, folder: Path, kind: str, make: list[str], sets: list[str]) -> None:
        self.options, self.folder, self.kind, self.loop, self.server = options, folder, kind, "", None
        self.image, self.fuse, self.point = folder / "image", folder / "fuse", folder / "mounted"
        self.log = (folder / "log").open("a")
        # A script that is ended puts away what it serves and has mounted.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        self.fuse.mkdir()
        self.point.mkdir()
        words = [word for pair in sets for word in ("--set", pair)]
        run(options.onefold, "ssd", "create", self.image, "--size", "1GiB", *words)
        self.on()
        if make:
            run(*make, self.loop)

    def on(self) -> None:
        """Serves it, as a loop device unless there is no file system to be mounted."""
        words = [self.options.onefold, "ssd", "serve", self.image, "--fuse", self.fuse]
        words += ["--latency", getattr(self.options, "latency", "none")]
        self.server = subprocess.Popen([str(word) for word in words], stdout=self.log, stderr=self.log)
        for _ in range(300):
            if (self.fuse / "disk").is_file():
                break
            time.sleep(0.1)
        if self.kind:
            self.loop = run("losetup", "--find", "--show", "--direct-io=on", self.fuse / "disk").strip()

    def mount(self) -> None:
        run("mount", self.loop, self.point)

    def unmount(self) -> None:
        run("umount", self.point)

    def counters(self) -> dict[str, int]:
        """Pages written by the host, programmed, and saved by kind."""
        told = json.loads(run(self.options.onefold, "ssd", "info", self.image, "--format", "json"))["device"]
        flash = told["flash"]
        programs = sum(flash["program_pages"].values())
        return {"written": told["host"]["write_pages"], "programmed": programs, **flash["saved_pages"]}

    def check(self) -> None:
        run(*CHECK[self.kind], self.loop)

    def off(self) -> None:
        if os.path.ismount(self.point):
            run("umount", self.point)
        if self.loop:
            run("losetup", "--detach", self.loop)
        self.server.terminate()
        self.server.wait()


@contextmanager
def drive(options: argparse.Namespace, kind: str, make: list[str]) -> Iterator[Drive]:
    """A drive that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="write-once-") as folder:
        one = Drive(options, Path(folder), kind, make, options.set)
        try:
            yield one
        finally:
            one.off()


def copy(one: Drive) -> None:
    run("cp", "-a", "--reflink=never", one.point / "tree", one.point / "copy")


def clone(one: Drive) -> None:
    run("git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", one.point / "repository", one.point / "clone")


def postgres(one: Drive, *commands: list[str]) -> str:
    """The output of the last command, run while a server of PostgreSQL has the data of the drive open."""
    programs = next(Path("/usr/lib/postgresql").glob("*/bin"))
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
    data, socket = one.point / "postgresql", one.folder / "socket"
    if not data.exists():
        for folder in (data, socket):
            run("install", "-d", "-o", "postgres", folder)
        one.folder.chmod(0o755)
        run(*user, programs / "initdb", "-D", data)
    server = [*user, programs / "postgres", "-D", data, "-k", socket, "-p", "5599", "-h", ""]
    with subprocess.Popen([str(word) for word in server], stdout=one.log, stderr=one.log) as running:
        while subprocess.run([programs / "pg_isready", "-q", "-h", socket, "-p", "5599"], check=False).returncode:
            time.sleep(0.1)
        try:
            told = [run(programs / name, "-h", socket, "-p", "5599", "-U", "postgres", *words) for name, *words in commands]
        finally:
            running.terminate()
    return told[-1]


SUM = "select count(*) || md5(string_agg(t::text, '' order by aid)) from pgbench_accounts t"


def create_database(one: Drive) -> None:
    """Copies a database of some 32 MiB file by file, and compares."""
    postgres(one, ["createdb", "-T", "a", "-S", "file_copy", "b"])


def compare_databases(one: Drive) -> None:
    """Whether the databases are equal."""
    first, second = (postgres(one, ["psql", "-Atqc", SUM, name]) for name in ("a", "b"))
    if first != second or not first.strip():
        raise RuntimeError(f"the copy of a database differs: {first} {second}")


def defragment(*words: str) -> Callable[[Drive], None]:
    """Runs a defragmenter on the mounted file system."""
    return lambda one: run(*words, one.point)  # type: ignore[func-returns-value]


# Name, file system, mkfs, programs that are needed, what is measured.
ROWS: list[tuple[str, str, list[str], list[str], Callable[[Drive], None]]] = [
    ("cp -a", "ext4", ["mkfs.ext4", "-q"], ["cp"], copy),
    ("cp -a", "xfs", ["mkfs.xfs", "-q"], ["cp"], copy),
    ("cp -a", "btrfs", ["mkfs.btrfs", "-q"], ["cp"], copy),
    ("git clone, loose objects", "ext4", ["mkfs.ext4", "-q"], ["git"], clone),
    ("git clone, one pack", "ext4", ["mkfs.ext4", "-q"], ["git"], clone),
    ("createdb, file_copy", "ext4", ["mkfs.ext4", "-q"], ["pg_ctl", "setpriv"], create_database),
    ("e4defrag", "ext4", ["mkfs.ext4", "-q"], ["e4defrag"], defragment("e4defrag")),
    ("xfs_fsr", "xfs", ["mkfs.xfs", "-q"], ["xfs_fsr"], defragment("xfs_fsr")),
    ("btrfs defragment", "btrfs", ["mkfs.btrfs", "-q"], ["btrfs"], defragment("btrfs", "filesystem", "defragment", "-rf")),
    ("btrfs balance", "btrfs", ["mkfs.btrfs", "-q"], ["btrfs"], defragment("btrfs", "balance", "start", "--full-balance")),
    ("btrfs balance, data DUP", "btrfs", ["mkfs.btrfs", "-q", "-d", "dup"], ["btrfs"],
     defragment("btrfs", "balance", "start", "--full-balance")),
]


def fill(one: Drive, options: argparse.Namespace, is_packed: bool) -> None:
    """A tree, with a file in as many pieces as a defragmenter wants, and a repository: of the tree, or that of an option."""
    tree = options.tree
    run("cp", "-a", "--reflink=never", tree, one.point / "tree")
    pieces, between = one.point / "tree" / "pieces", one.point / "between"
    with pieces.open("wb") as wanted, between.open("wb") as other:
        for _ in range(512):
            for file in (wanted, other):
                file.write(os.urandom(16384))
                file.flush()
                os.fsync(file.fileno())
    between.unlink()
    repository = one.point / "repository"
    if options.repository:
        run("git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", options.repository, repository)
        if is_packed:
            run("git", "-c", "safe.directory=*", "gc", "-q", cwd=repository)
    elif shutil.which("git"):
        run("cp", "-a", "--reflink=never", tree, repository)
        git = ["git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@example.org"]
        for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "all"]):
            run(*git, *words, cwd=repository)
        if is_packed:
            run(*git, "gc", "-q", cwd=repository)


def measure(row: tuple[str, str, list[str], list[str], Callable[[Drive], None]], options: argparse.Namespace) -> str:
    """A row of the table."""
    name, kind, make, _, act = row
    with drive(options, kind, make) as one:
        one.mount()
        fill(one, options, is_packed=name.endswith("pack"))
        if act is create_database:
            postgres(one, ["createdb", "a"], ["pgbench", "-q", "-i", "-s", "2", "a"])
        before_files = digests(one.point)
        one.unmount()
        one.mount()
        drop_caches()
        before = one.counters()
        act(one)
        one.unmount()
        after = one.counters()
        one.check()
        one.mount()
        drop_caches()
        now = digests(one.point)
        wrong = [path for path, digest in before_files.items() if now.get(path) != digest and not path.startswith("postgresql/")]
        if act is create_database:
            compare_databases(one)
        if name.startswith("cp"):
            original, copied = digests(one.point / "tree"), digests(one.point / "copy")
            wrong += [path for path, digest in original.items() if copied.get(path) != digest]
        if wrong:
            raise RuntimeError(f"{name} on {kind}: {len(wrong)} files differ, such as {wrong[0]}")
    part = {key: after[key] - before[key] for key in after}
    saved = part["copy_read"] + part["copy_write"] + part["zero"]
    share = 100 * saved / max(part["written"], 1)
    cells = [name, kind, *(f"{part[key]:,}" for key in ("written", "copy_read", "copy_write", "zero", "programmed")), f"{share:.1f} %"]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onefold", default=str(ROOT / "target" / "release" / "onefold"))
    parser.add_argument("--set", action="append", default=[], help="keys of the drive")
    parser.add_argument("--only", default="", help="rows whose name begins so")
    parser.add_argument("--tree", type=Path, default=Path("/usr/lib/python3"), help="files to work on")
    parser.add_argument("--repository", type=Path, help="what to clone, instead of a repository of the tree with one commit")
    options = parser.parse_args()
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists() or not Path("/dev/fuse").exists():
        print("skipped: copies on served drives (root, /dev/fuse and loop devices)")
        return 0
    options.set = options.set or ["ftl.remap=lh", "dedup.scope=reads", "dedup.hash=xxh3"]
    print(f"Pages of 4 KiB; {', '.join(options.set)}")
    print("| program | file system | written | copies of reads | of writes | zeroes | programmed | saved |\n|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        missing = [program for program in [row[2][0], *row[3]] if shutil.which(program) is None]
        if not row[0].startswith(options.only):
            continue
        print(f"| {row[0]} | {row[1]} | skipped: no {missing[0]} |" if missing else measure(row, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
