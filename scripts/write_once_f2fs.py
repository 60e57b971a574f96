#!/usr/bin/env python3
"""What a drive that sees copies saves while an unmodified F2FS cleans.

    scripts/write_once_f2fs.py [--onefold PATH] [--size SIZE] [--full PERCENT] [--churn SIZE] [--set KEY=VALUE]..

F2FS in a guest (scripts/guest/image.sh) on a served drive, once without and once with deduplication of what was read: it is filled,
overwritten at random (`mode=lfs`), and cleaned. Each step has a guest and a server of its own, so that nobody remembers what was read
before cleaning. Pages are those that the drive counts from the start of the server of that step to its end. Then fsck.f2fs looks at
the file system, and every file is compared: once as it is, and once after the newer checkpoint was damaged on flash. Needs QEMU, and no
root.
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from damaged_page import PAGE, damage

ROOT = Path(__file__).resolve().parent.parent
SEES_COPIES = ["dedup.scope=reads", "dedup.hash=xxh3", "dedup.hash_units=16"]


def run(*words: object) -> str:
    """The output of a program that ends well."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def counters(onefold: str, image: Path) -> dict[str, int]:
    """Pages written by the host, programmed, and saved because they had been read, in the life of the server."""
    told = json.loads(run(onefold, "ssd", "info", image, "--format", "json"))["device"]
    flash = told["flash"]
    return {
        "written": told["host"]["write_pages"],
        "copies": flash["saved_pages"]["copy_read"],
        "programmed": sum(flash["program_pages"].values()),
    }


@contextmanager
def served(options: argparse.Namespace, folder: Path, image: Path) -> Iterator[str]:
    """A server of the drive; the address of the drive for QEMU."""
    socket = folder / "nbd"
    words = [options.onefold, "ssd", "serve", str(image), "--latency", "none", "--nbd", f"unix:{socket}", "--quiet"]
    with subprocess.Popen(words) as server:
        try:
            while not socket.is_socket() and server.poll() is None:
                time.sleep(0.1)
            yield f"nbd+unix:///?socket={socket}"
        finally:
            server.terminate()


def step(options: argparse.Namespace, folder: Path, image: Path, command: str) -> dict[str, int]:
    """Runs a command of the guest on the drive; what the drive counted meanwhile."""
    share = folder / "share"
    (share / "run.sh").write_text(f"sh ./f2fs-copies.sh {command}\n")
    with served(options, folder, image) as address:
        before = counters(options.onefold, image)
        disk = f"if=none,id=n,file={address},format=raw,cache=none"
        try:
            run(ROOT / "scripts/guest/boot.sh", share, 1800, "-drive", disk, "-device", "virtio-blk-pci,drive=n")
        finally:
            output = share / "output"
            print(output.read_text() if output.is_file() else "", end="", flush=True)
        after = counters(options.onefold, image)
    return {key: after[key] - before[key] for key in after}


def damage_checkpoint(options: argparse.Namespace, folder: Path, image: Path) -> None:
    """Damages the head of the newer one of the two checkpoints."""
    with served(options, folder, image) as address:

        def block(number: int) -> bytes | None:
            one = folder / "block"
            # It counts from the first block of the disk, not from what it skips.
            part = [f"bs={PAGE}", f"skip={number}", f"count={number + 1}"]
            dd = ["qemu-img", "dd", "-f", "raw", "-O", "raw", *part, f"if={address}", f"of={one}"]
            done = subprocess.run(dd, capture_output=True, check=False)
            return None if done.returncode else one.read_bytes()[:PAGE]

        superblock = block(0)
        per_segment, first = (struct.unpack_from("<I", superblock, 1024 + at)[0] for at in (20, 76))
        heads = [first, first + (1 << per_segment)]
        newer = max(heads, key=lambda head: struct.unpack_from("<Q", block(head))[0])
        damage(image, newer, block)
        if block(sum(heads) - newer) is None:
            raise RuntimeError("the checkpoints of F2FS share a page")


def measure(options: argparse.Namespace, sets: list[str]) -> dict[str, int]:
    """Counters of a cleaning on a new drive."""
    with tempfile.TemporaryDirectory(prefix="write-once-") as name:
        folder, image = Path(name), Path(name) / "image"
        share = folder / "share"
        share.mkdir()
        shutil.copy(ROOT / "scripts/guest/f2fs-copies.sh", share)
        words = [word for pair in sets for word in ("--set", pair)]
        run(options.onefold, "ssd", "create", image, "--size", options.size, *words)
        step(options, folder, image, f"age {options.full} {options.churn}")
        cleaned = step(options, folder, image, "clean")
        step(options, folder, image, "check")
        damage_checkpoint(options, folder, image)
        step(options, folder, image, "check")
    return cleaned


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onefold", default=os.environ.get("ONEFOLD", str(ROOT / "target" / "release" / "onefold")))
    parser.add_argument("--size", default="320MiB", help="of the drive")
    parser.add_argument("--full", type=int, default=85, help="how full the file system is, in percent")
    parser.add_argument("--churn", default="200m", help="bytes that are overwritten before cleaning")
    parser.add_argument("--set", action="append", default=[], help="more keys of both drives")
    options = parser.parse_args()
    image = subprocess.run([ROOT / "scripts/guest/image.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if shutil.which("qemu-system-x86_64") is None or image.returncode:
        print(f"skipped: F2FS in a guest ({image.stdout.strip() if image.returncode else 'no qemu-system-x86_64'})")
        return int("guest" in os.environ.get("ONEFOLD_REQUIRE", "").split(","))
    cleaned = {
        "off": measure(options, options.set),
        "reads": measure(options, ["ftl.remap=lh", *SEES_COPIES, *options.set]),
    }
    print("| `dedup.scope` | written | copies of reads | programmed |\n|---|---|---|---|")
    for name, part in cleaned.items():
        print(f"| `{name}` | {part['written']:,} | {part['copies']:,} | {part['programmed']:,} |")
    programs = {name: part["programmed"] for name, part in cleaned.items()}
    print(f"programs of cleaning that are gone: {100 - 100 * programs['reads'] / programs['off']:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
