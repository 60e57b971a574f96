#!/usr/bin/env python3
"""Compares the journal detector with the tools of the file systems, on images that are made here.

    scripts/journals.py [CASE...]      all cases, unless some are named (a prefix is enough)

Each case makes an image, asks the file system's own tool where journal and hot metadata lie (dumpe2fs and debugfs,
xfs_db, dump.f2fs, btrfs), and expects `onefold volume journals` to say the same, block by block. Needs no root. Prints
PASS, FAIL or SKIP per case; ends with 1 if a case failed. ONEFOLD is the binary to use.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 4096
MIB = 1 << 20
UUID = "6a6f7572-6e61-6c20-6f66-206f6e65666f"


def run(*command: object) -> str:
    """Output of a command that must succeed."""
    words = [str(word) for word in command]
    for pause in [*[1] * 30, 0]:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENV)
        # mkfs.btrfs looks at every loop device there is, and fails if the file below any of them does not answer. That is so
        # for as long as a test that runs beside this one has killed its server and not yet cleaned up.
        if done.returncode == 0 or "cannot check mount status" not in done.stderr:
            break
        time.sleep(pause)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-500:]}")
    return done.stdout


ENV = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "DEBUGFS_PAGER": "cat"}


class Classes:
    """Class by block of 4 KiB, with the detector's rule for blocks that are in two."""

    RANK = ["meta_hot", "jlog", "jhot"]

    def __init__(self) -> None:
        self.of: dict[int, str] = {}

    def add(self, name: str, first_byte: int, count: int) -> None:
        if count <= 0:
            return
        for block in range(first_byte // BLOCK, -(-(first_byte + count) // BLOCK)):
            old = self.of.get(block)
            if old is None or self.RANK.index(old) < self.RANK.index(name):
                self.of[block] = name

    def words(self) -> str:
        counts = {name: sum(1 for value in self.of.values() if value == name) for name in self.RANK}
        return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "no range"


def detected(image: Path) -> tuple[Classes, list[str], str]:
    """Classes, remarks and the lowest confidence, as the detector says."""
    said = json.loads(run(ONEFOLD, "volume", "journals", image, "--format", "json"))
    classes = Classes()
    for one in said["ranges"]:
        classes.add(one["class"], one["first_block"] * BLOCK, one["blocks"] * BLOCK)
    order = ["low", "medium", "high"]
    confidence = min((one["confidence"] for one in said["ranges"]), key=order.index, default="none")
    return classes, [f"{one['system']}: {one['why']}" for one in said["remarks"]], confidence


def field(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}:\s*(\S.*?)\s*$", text, re.MULTILINE)
    return found and found[1]


def blocks_of_journal(image: Path, inode: int) -> list[int]:
    """Blocks of the journal in their order, without those of its map."""
    stat = run("debugfs", "-R", f"stat <{inode}>", image)
    listed = stat.split("BLOCKS:")[-1] if "BLOCKS:" in stat else stat.split("EXTENTS:")[-1]
    numbered = {}
    for begin, end, first, last in re.findall(r"\((\d+)(?:-(\d+))?\):(\d+)(?:-(\d+))?", listed):
        count = int(end or begin) - int(begin) + 1
        assert count == int(last or first) - int(first) + 1, listed
        numbered |= {int(begin) + n: int(first) + n for n in range(count)}
    assert sorted(numbered) == list(range(len(numbered))), "debugfs shows a journal with holes"
    return [numbered[n] for n in range(len(numbered))]


def of_ext(image: Path, base: int = 0) -> Classes:
    """What dumpe2fs and debugfs say."""
    header = run("dumpe2fs", "-h", image)
    classes = Classes()
    size = int(field(header, "Block size"))
    if "journal_dev" in field(header, "Filesystem features"):
        total, first = int(field(header, "Total journal blocks")), int(field(header, "Journal first block"))
        blocks, start, at = list(range(total)), first, 1 if size > 1024 else 2
    elif "has_journal" in field(header, "Filesystem features") and field(header, "Journal inode"):
        blocks = blocks_of_journal(image, int(field(header, "Journal inode")))
        total, start, at = int(field(header, "Total journal blocks")), 1, 0
        assert total <= len(blocks)
    else:
        return classes
    fast = int(field(header, "Fast commit length") or 0)
    if "fast_commit" not in field(header, "Filesystem features"):
        fast = 0
    for n in range(start, total):
        classes.add("jlog" if n < total - fast else "jhot", base + blocks[n] * size, size)
    classes.add("jhot", base + blocks[at] * size, size)
    return classes


def of_xfs(image: Path, base: int = 0) -> Classes:
    """What xfs_db says."""
    classes = Classes()
    text = run("xfs_db", "-r", "-c", "sb 0", "-c", "p blocksize logstart logblocks", image)
    value = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", text)}
    if value["logstart"]:
        daddr = run("xfs_db", "-r", "-c", f"convert fsblock {value['logstart']} daddr", image)
        first = int(re.search(r"\((\d+)\)", daddr)[1]) * 512
        classes.add("jlog", base + first, value["logblocks"] * value["blocksize"])
    return classes


def of_f2fs(image: Path, base: int = 0) -> Classes:
    """What dump.f2fs says."""
    text = run("dump.f2fs", "-d", "1", image)
    at = {
        name: int(re.search(rf"^{name}_blkaddr\s.*:\s*(\d+)\]", text, re.MULTILINE)[1])
        for name in ("cp", "ssa")
    }
    classes = Classes()
    classes.add("meta_hot", base + at["cp"] * BLOCK, (at["ssa"] - at["cp"]) * BLOCK)
    return classes


def of_btrfs(image: Path, base: int = 0) -> Classes:
    """What btrfs says of all copies of its header."""
    text = run("btrfs", "inspect-internal", "dump-super", "--all", image)
    classes = Classes()
    for byte in re.findall(r"^bytenr\s+(\d+)", text, re.MULTILINE):
        classes.add("meta_hot", base + int(byte), BLOCK)
    return classes


def fresh(folder: Path, mib: int, name: str = "image") -> Path:
    image = folder / name
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    return image


def ext(kind: str, mib: int, *options: str):
    def case(folder: Path):
        image = fresh(folder, mib)
        run(f"mkfs.{kind}", "-q", "-F", *options, image)
        return image, of_ext(image)

    return case


def ext_external(block: int, *, of_data: bool):
    def case(folder: Path):
        journal, data = fresh(folder, 64, "journal"), fresh(folder, 256)
        run("mkfs.ext4", "-q", "-F", "-b", block, "-O", "journal_dev", "-U", UUID, journal)
        # tune2fs and mke2fs take a block device only; debugfs writes the same fields.
        run("mkfs.ext4", "-q", "-F", "-b", block, "-O", "^has_journal", data)
        for command in ("feature has_journal", "ssv journal_inum 0", f"ssv journal_uuid {UUID}"):
            run("debugfs", "-w", "-R", command, data)
        return (data, of_ext(data)) if of_data else (journal, of_ext(journal))

    return case


def ext_changed(*commands: tuple[str, ...], options: tuple[str, ...] = (), mib: int = 512):
    """`IMAGE` in a command is the image."""

    def case(folder: Path):
        image = fresh(folder, mib)
        run("mkfs.ext4", "-q", "-F", *options, image)
        for command in commands:
            run(*(str(image) if word == "IMAGE" else word for word in command))
        return image, of_ext(image)

    return case


def ext_unclean(folder: Path):
    """A journal that holds a transaction, so that it has a tail."""
    image, commands = fresh(folder, 512), folder / "commands"
    run("mkfs.ext4", "-q", "-F", image)
    commands.write_text(f"jo\njw -b 5000 {image.parent / 'block'}\njc\n")
    (folder / "block").write_bytes(bytes(BLOCK))
    run("debugfs", "-w", "-f", commands, image)
    start = int(field(run("dumpe2fs", "-h", image), "Journal start"))
    assert start > 0, "the journal is empty"
    return image, of_ext(image)


def ext_pieces(feature: str):
    """A journal made where every second file of many was deleted."""

    def case(folder: Path):
        (folder / "tree").mkdir()
        for n in range(500):
            (folder / "tree" / f"{n}").write_bytes(bytes([n % 255 + 1]) * 100_000)
        image = fresh(folder, 64)
        features = f"^has_journal,^64bit,{feature}"
        run("mkfs.ext4", "-q", "-F", "-b", "1024", "-O", features, "-d", folder / "tree", image)
        shutil.rmtree(folder / "tree")
        commands = folder / "commands"
        commands.write_text("".join(f"rm {n}\n" for n in range(0, 500, 2)))
        run("debugfs", "-w", "-f", commands, image)
        run("tune2fs", "-J", "size=16", image)
        blocks = blocks_of_journal(image, 8)
        pieces = 1 + sum(1 for a, b in zip(blocks, blocks[1:]) if a + 1 != b)
        assert pieces > 50, f"the journal is in {pieces} pieces only"
        return image, of_ext(image)

    return case


def xfs(mib: int, *options: str):
    def case(folder: Path):
        image = fresh(folder, mib)
        run("mkfs.xfs", "-q", "-f", *options, image)
        return image, of_xfs(image)

    return case


def xfs_external(*, of_data: bool):
    def case(folder: Path):
        data, log = fresh(folder, 512), fresh(folder, 64, "log")
        run("mkfs.xfs", "-q", "-f", "-l", f"logdev={log},size=64m", data)
        if of_data:
            return data, of_xfs(data)
        classes = Classes()
        classes.add("jlog", 0, 64 * MIB)
        return log, classes

    return case


def f2fs(mib: int):
    def case(folder: Path):
        image = fresh(folder, mib)
        run("mkfs.f2fs", "-q", "-f", image)
        return image, of_f2fs(image)

    return case


def btrfs(mib: int):
    def case(folder: Path):
        image = fresh(folder, mib)
        run("mkfs.btrfs", "-q", "-f", image)
        return image, of_btrfs(image)

    return case


MAKE = {
    "ext4": (["mkfs.ext4", "-q", "-F", "-E", "nodiscard"], of_ext),
    "xfs": (["mkfs.xfs", "-q", "-f", "-K"], of_xfs),
    "f2fs": (["mkfs.f2fs", "-q", "-f", "-t", "0"], of_f2fs),
    "btrfs": (["mkfs.btrfs", "-q", "-f", "-K"], of_btrfs),
}


def over(old: str, new: str):
    """One file system over another, of which nothing is discarded."""

    def case(folder: Path):
        image = fresh(folder, 512)
        for system in (old, new):
            run(*MAKE[system][0], image)
        return image, MAKE[new][1](image)

    return case


def partitions(label: str, *systems: str):
    """Partitions of 512 MiB, each with a file system; the second of an MBR is a logical one."""

    def case(folder: Path):
        disk = fresh(folder, 512 * len(systems) + 16, "disk")
        script = f"label: {label}\n"
        for n, _ in enumerate(systems):
            if label == "dos" and n == 1:
                script += "type=5\n"
            # One that does not begin on a whole block of 4 KiB.
            start = "start=2051, " if n == 0 else ""
            script += f"{start}size=512MiB\n" if n + 1 < len(systems) or label == "gpt" else "size=500MiB\n"
        subprocess.run(["sfdisk", "--quiet", disk], input=script, text=True, check=True, env=ENV)
        table = json.loads(run("sfdisk", "--json", disk))["partitiontable"]["partitions"]
        classes = Classes()
        for one, system in zip((p for p in table if p["type"] != "5"), systems, strict=True):
            size = one["size"] * 512
            image = fresh(folder, 0)
            os.truncate(image, size)
            run(*MAKE[system][0], image)
            with image.open("rb") as source, disk.open("r+b") as target:
                target.seek(one["start"] * 512)
                shutil.copyfileobj(source, target, MIB)
            base = one["start"] * 512
            classes.of |= MAKE[system][1](image, base).of
        return disk, classes

    return case


def image_in_file(folder: Path):
    """A file that holds a whole ext4 with a journal is data."""
    inner = fresh(folder, 64, "inner")
    run("mkfs.ext4", "-q", "-F", inner)
    (folder / "tree").mkdir()
    shutil.move(inner, folder / "tree" / "inner")
    image = fresh(folder, 512)
    run("mkfs.ext4", "-q", "-F", "-d", folder / "tree", image)
    shutil.rmtree(folder / "tree")
    return image, of_ext(image)


def on_volume(folder: Path):
    """The content of a volume, not of what it lies on."""
    image, volume, sock = fresh(folder, 512), folder / "volume", folder / "socket"
    run("mkfs.ext4", "-q", "-F", image)
    run(ONEFOLD, "volume", "create", volume, "--size", "512MiB", "--backing-size", "1GiB")
    server = subprocess.Popen(
        [ONEFOLD, "volume", "serve", volume, "--nbd", f"unix:{sock}"], stderr=subprocess.PIPE, text=True
    )
    try:
        for _ in range(300):
            if sock.exists():
                try:
                    with socket.socket(socket.AF_UNIX) as probe:
                        probe.connect(str(sock))
                    break
                except ConnectionRefusedError:
                    pass
            time.sleep(0.1)
        run("nbdcopy", "--flush", image, f"nbd+unix:///?socket={sock}")
    finally:
        server.terminate()
        server.wait(60)
    return volume, of_ext(image)


CASES = {
    "ext3": (ext("ext3", 256), "high"),
    "ext3, 1 KiB blocks, block map": (ext("ext3", 256, "-b", "1024", "-J", "size=64"), "high"),
    "ext4, 4 KiB": (ext("ext4", 512), "high"),
    "ext4, 1 KiB": (ext("ext4", 512, "-b", "1024"), "high"),
    "ext4, 2 KiB": (ext("ext4", 512, "-b", "2048"), "high"),
    "ext4, 64 KiB": (ext("ext4", 1024, "-b", "65536"), "high"),
    "ext4, block map, 256 MiB": (ext("ext4", 2048, "-O", "^extents,^64bit", "-J", "size=256"), "high"),
    "ext4, extents, 1 GiB": (ext("ext4", 8192, "-J", "size=1024"), "high"),
    "ext4, fast commit": (ext("ext4", 512, "-O", "fast_commit"), "high"),
    "ext4, fast commit of 1 MiB, 1 KiB": (
        ext("ext4", 512, "-b", "1024", "-O", "fast_commit", "-J", "size=32,fast_commit_size=1024"), "high"),
    "ext4, bigalloc": (ext("ext4", 1024, "-O", "bigalloc"), "high"),
    "ext4, no journal": (ext("ext4", 256, "-O", "^has_journal"), "none"),
    "ext4, external journal, the journal": (ext_external(4096, of_data=False), "high"),
    "ext4, external journal of 1 KiB blocks": (ext_external(1024, of_data=False), "high"),
    "ext4, external journal, the data": (ext_external(4096, of_data=True), "none"),
    "ext4, journal in pieces, extents": (ext_pieces("extents"), "high"),
    "ext4, journal in pieces, block map": (ext_pieces("^extents"), "high"),
    "ext4, no backup of the inode": (
        ext_changed(("debugfs", "-w", "-R", "ssv jnl_backup_type 0", "IMAGE")), "high"),
    "ext4, no backup, 32 bit, block map": (
        ext_changed(("debugfs", "-w", "-R", "ssv jnl_backup_type 0", "IMAGE"), options=("-O", "^64bit,^extents", "-b", "1024")), "high"),
    "ext4, after tune2fs -J": (
        ext_changed(("tune2fs", "-O", "^has_journal", "IMAGE"), ("tune2fs", "-J", "size=48", "IMAGE")), "high"),
    "ext4, journal that was not replayed": (ext_unclean, "high"),
    "ext4, after resize2fs, larger": (
        ext_changed(("truncate", "-s", "3G", "IMAGE"), ("resize2fs", "IMAGE")), "high"),
    "ext4, after resize2fs, smaller": (
        ext_changed(("e2fsck", "-f", "-y", "IMAGE"), ("resize2fs", "-M", "IMAGE")), "high"),
    "xfs, 512 MiB": (xfs(512), "high"),
    "xfs, 8 GiB": (xfs(8192), "high"),
    "xfs, 1 KiB blocks, 7 groups": (xfs(700, "-b", "size=1024", "-d", "agcount=7", "-l", "agnum=3"), "high"),
    "xfs, external log, the log": (xfs_external(of_data=False), "medium"),
    "xfs, external log, the data": (xfs_external(of_data=True), "none"),
    "f2fs, 512 MiB": (f2fs(512), "high"),
    "f2fs, 16 GiB": (f2fs(16384), "high"),
    "btrfs, 512 MiB": (btrfs(512), "high"),
    "btrfs, 300 GiB": (btrfs(300 << 10), "high"),
    "gpt with ext4, xfs, f2fs": (partitions("gpt", "ext4", "xfs", "f2fs"), "high"),
    "mbr with ext4, xfs": (partitions("dos", "ext4", "xfs"), "high"),
    "ext4 in a file of ext4": (image_in_file, "high"),
    "ext4 on a volume": (on_volume, "high"),
} | {
    f"{new} over {old}": (over(old, new), "high")
    for old in MAKE for new in MAKE if old != new
}

TOOLS = {
    "ext": ["mkfs.ext3", "mkfs.ext4", "dumpe2fs", "debugfs", "tune2fs", "resize2fs"],
    "xfs": ["mkfs.xfs", "xfs_db"],
    "f2fs": ["mkfs.f2fs", "dump.f2fs"],
    "btrfs": ["mkfs.btrfs", "btrfs"],
    "gpt": ["sfdisk"],
    "mbr": ["sfdisk"],
    "volume": ["nbdcopy"],
}


def missing(name: str) -> list[str]:
    words = [tool for part, tools in TOOLS.items() if part in name for tool in tools]
    return [tool for tool in words if not shutil.which(tool, path=ENV["PATH"])]


def check(name: str, folder: Path) -> str | None:
    """What is wrong, if anything."""
    make, confidence = CASES[name]
    image, expected = make(folder)
    found, remarks, sure = detected(image)
    wrong = [
        f"block {block}: {found.of.get(block)}, the tools say {expected.of.get(block)}"
        for block in sorted(found.of.keys() | expected.of.keys())
        if found.of.get(block) != expected.of.get(block)
    ]
    if wrong:
        return f"{len(wrong)} blocks differ, first {wrong[0]}; remarks: {remarks}"
    if sure != confidence:
        return f"confidence {sure}, expected {confidence}; remarks: {remarks}"
    print(f"PASS  {name}: {expected.words()}", flush=True)
    return None


def main() -> int:
    wanted = sys.argv[1:]
    failed = skipped = passed = 0
    for name in CASES:
        if wanted and not any(name.startswith(prefix) for prefix in wanted):
            continue
        if lacking := missing(name):
            print(f"SKIP  {name}: missing {' '.join(lacking)} (scripts/setup.sh installs it)")
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong = check(name, Path(folder))
            except (RuntimeError, AssertionError, subprocess.CalledProcessError) as error:
                wrong = f"{type(error).__name__}: {error}"
        if wrong:
            print(f"FAIL  {name}: {wrong}", flush=True)
            failed += 1
        else:
            passed += 1
    print(f"journals: {passed} passed, {failed} failed, {skipped} skipped")
    required = "t1" in os.environ.get("ONEFOLD_REQUIRE", "").split(",")
    return 1 if failed or (required and skipped) else 0


def binary() -> str:
    if given := os.environ.get("ONEFOLD"):
        return given
    subprocess.run(["cargo", "build", "--release", "--locked", "--package", "onefold"], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return str(Path(target) / "release" / "onefold")


if __name__ == "__main__":
    ONEFOLD = binary()
    sys.exit(main())
