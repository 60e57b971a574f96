#!/usr/bin/env python3
"""Copies that a file system keeps on purpose: are there two on a drive that sees copies?

    scripts/write_once_damage.py [--onefold PATH] [--tree FOLDER] [--only NAME]

A file system is made on a served drive with `dedup.scope=reads`, read, and rewritten where it does that by itself. Then one copy is
damaged on flash, and the file system has to heal from the other:

    btrfs DUP         leaves of metadata that a balance has moved: a scrub heals the first copies, then the second ones
    ext4 superblock   the first superblock: `e2fsck -b` takes a backup
    F2FS superblock   each of the two: fsck.f2fs takes the other one, which is then copied back

A file system with one copy fails: the last row has `dedup.scope=all`, where btrfs DUP has one page, and a scrub has nothing to heal from.
Needs root, /dev/fuse and loop devices; a row whose programs are missing is skipped.
"""

import argparse
import errno
import mmap
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from damaged_page import PAGE, damage
from write_once_copies import ROOT, Drive, digests, drive, drop_caches, run

# Leaves that are damaged, at most.
LEAVES = 12
SETS = ["ftl.remap=lh", "dedup.hash=xxh3"]


def block_of(one: Drive, block: int) -> bytes | None:
    """A block as the drive has it, or None if it cannot be read."""
    disk = os.open(one.loop, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, PAGE) as page:
            os.preadv(disk, [page], block * PAGE)
            return page[:]
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None
    finally:
        os.close(disk)


def hurt(one: Drive, block: int) -> None:
    damage(one.image, block, lambda block: block_of(one, block))


def expect_readable(one: Drive, blocks: list[int], what: str) -> None:
    lost = [block for block in blocks if block_of(one, block) is None]
    if lost:
        raise RuntimeError(f"{what} share a page with what was damaged: blocks {lost}")


def expect_same(one: Drive, before: dict[str, str]) -> None:
    """Every file is there as it was, and the file system is in order."""
    one.check()
    one.mount()
    drop_caches()
    if digests(one.point) != before:
        raise RuntimeError(f"files of {one.kind} differ")
    one.unmount()


def leaves(one: Drive) -> list[tuple[int, int]]:
    """Blocks where the two copies begin, of some leaves of the files' tree."""
    # Not by `btrfs-map-logical`: it finds neither copy of some leaves.
    told = run("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", one.loop)
    chunk = r"CHUNK_ITEM (\d+)\).*\n\t+length (\d+) .*DUP\n.*\n.*\n\t+stripe 0 devid 1 offset (\d+)\n.*\n\t+stripe 1 devid 1 offset (\d+)"
    chunks = [tuple(map(int, found)) for found in re.findall(chunk, told)]
    tree = run("btrfs", "inspect-internal", "dump-tree", "-t", "5", one.loop)
    found = [int(at) for at in re.findall(r"^leaf (\d+) items", tree, re.MULTILINE)]
    pairs = []
    for logical in found[:: -(-len(found) // LEAVES)]:
        begin, first, second = next((b, x, y) for b, length, x, y in chunks if b <= logical < b + length)
        pairs.append(((logical - begin + first) // PAGE, (logical - begin + second) // PAGE))
    return pairs


def scrub(one: Drive) -> dict[str, int]:
    """What a scrub counted."""
    one.mount()
    # It ends with 3 if it says that there was something which it could not correct.
    done = subprocess.run(["btrfs", "scrub", "start", "-B", "-R", one.point], capture_output=True, text=True, check=False)
    one.unmount()
    return {name: int(number) for name, number in re.findall(r"(\w+): (\d+)", done.stdout)}


def btrfs(one: Drive, before: dict[str, str]) -> str:
    one.mount()
    run("btrfs", "balance", "start", "--full-balance", one.point)
    one.unmount()
    drop_caches()
    pairs = leaves(one)
    for side in (0, 1):
        for pair in pairs:
            hurt(one, pair[side])
        expect_readable(one, [pair[1 - side] for pair in pairs], "copies of btrfs DUP")
        # The first one of Linux 6.18 counts some as uncorrectable that it heals; the second one finds whether it did.
        first, second = scrub(one), scrub(one)
        if first["corrected_errors"] == 0 or second["read_errors"] or second["uncorrectable_errors"]:
            raise RuntimeError(f"side {side} of {len(pairs)} leaves is not healed: {first}, then {second}")
        expect_readable(one, [block for pair in pairs for block in pair], "healed copies")
    expect_same(one, before)
    return f"{len(pairs)} leaves healed, then their other copies"


def btrfs_shared(one: Drive, before: dict[str, str]) -> str:
    """The same with one page for both copies: it must not heal, or the rows above show nothing."""
    try:
        btrfs(one, before)
    except RuntimeError as error:
        if "share a page" in str(error):
            return "both copies lost"
        raise
    raise RuntimeError("two copies with dedup.scope=all: this script cannot find a shared page")


def ext4(one: Drive, before: dict[str, str]) -> str:
    backup = re.findall(r"Backup superblock at (\d+)", run("dumpe2fs", one.loop))[0]
    hurt(one, 0)
    expect_readable(one, [int(backup), int(backup) + 1], "backups of ext4")
    if subprocess.run(["mount", one.loop, one.point], capture_output=True, check=False).returncode == 0:
        raise RuntimeError("ext4 is mounted without its superblock")
    # What cannot be read is written as a whole first, as on any drive.
    run("dd", "if=/dev/zero", f"of={one.loop}", f"bs={PAGE}", "count=1", "oflag=direct", "status=none")
    done = subprocess.run(["e2fsck", "-fy", "-b", backup, "-B", str(PAGE), one.loop], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"e2fsck -b {backup}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    expect_same(one, before)
    return f"healed from block {backup}"


def f2fs(one: Drive, _before: dict[str, str]) -> str:
    for damaged, other in ((0, 1), (1, 0)):
        hurt(one, damaged)
        expect_readable(one, [other], "superblocks of F2FS")
        dd = ["dd", f"of={one.loop}", f"bs={PAGE}", f"seek={damaged}", "count=1", "oflag=direct", "status=none"]
        run(*dd, "if=/dev/zero")
        told = run("fsck.f2fs", "--dry-run", one.loop)
        if "[Fail]" in told or (damaged == 0 and "valid F2FS superblock at 0x0" not in told):
            raise RuntimeError(f"fsck.f2fs:\n{told}")
        # It does not write it anew, as the kernel does: that is a copy of what was read.
        run(*dd, f"if={one.loop}", f"skip={other}", "iflag=direct")
    return "each opened by the other"


# Name, scope, file system, mkfs, programs that are needed, what is damaged and healed.
ROWS: list[tuple[str, str, str, list[str], list[str], Callable[[Drive, dict[str, str]], str]]] = [
    ("btrfs DUP", "reads", "btrfs", ["mkfs.btrfs", "-q", "-m", "dup"], [], btrfs),
    ("ext4 superblock", "reads", "ext4", ["mkfs.ext4", "-q", "-b", "4096"], ["e2fsck", "dumpe2fs"], ext4),
    ("F2FS superblock", "reads", "f2fs", ["mkfs.f2fs", "-q"], ["sload.f2fs", "fsck.f2fs"], f2fs),
    ("btrfs DUP", "all", "btrfs", ["mkfs.btrfs", "-q", "-m", "dup"], [], btrfs_shared),
]


def filled(one: Drive, tree: Path) -> dict[str, str]:
    """Puts a tree on the file system, and reads all of the drive as a scrub or a backup does; digests of the files."""
    if one.kind == "f2fs":
        run("sload.f2fs", "-f", tree, one.loop)
        before = {}
    else:
        one.mount()
        run("cp", "-a", "--reflink=never", tree, one.point / "tree")
        before = digests(one.point)
        one.unmount()
    drop_caches()
    run("dd", f"if={one.loop}", "of=/dev/null", "bs=1M", "iflag=direct", "status=none")
    return before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onefold", default=os.environ.get("ONEFOLD", str(ROOT / "target" / "release" / "onefold")))
    parser.add_argument("--tree", type=Path, default=Path("/usr/lib/python3/dist-packages"), help="files on the file systems")
    parser.add_argument("--only", default="", help="rows whose name begins so")
    options = parser.parse_args()
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists() or not Path("/dev/fuse").exists():
        print("skipped: damage on served drives (root, /dev/fuse and loop devices)")
        return int("t1" in os.environ.get("ONEFOLD_REQUIRE", "").split(","))
    print("| damaged | `dedup.scope` | result |\n|---|---|---|")
    for name, scope, kind, make, programs, act in ROWS:
        if not name.startswith(options.only):
            continue
        missing = [program for program in [make[0], *programs] if shutil.which(program) is None]
        if missing:
            print(f"| {name} | `{scope}` | skipped: no {missing[0]} |")
            continue
        options.set = [*SETS, f"dedup.scope={scope}"]
        with drive(options, kind, make) as one:
            before = filled(one, options.tree)
            print(f"| {name} | `{scope}` | {act(one, before)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
