#!/usr/bin/env python3
"""Makes of a tape what a host would have asked that cleans by remap (Wu 2022, section V-D).

    scripts/remaps_of_tape.py TAPE FROM TO OUT      writes OUT-run.oft, OUT-clean.oft and OUT-again.oft

Between the reads of FROM and TO, which are numbers of reads of the block at 4 KiB, of 4 KiB, counted from the end (2 and 1 are the last
two), a page that is written with what lies at another place of the disk is remapped from there. Reads of pages that are moved that
way are left out: the host need not see them. All other requests stay as they are. The traces end before FROM, before TO, and at
the end. Prints how many requests each has, which are the `run.warmup` of the next, and what became of the pages written by cleaning.
"""

import hashlib
import struct
import sys
from collections import defaultdict, deque
from pathlib import Path

PAGE = 4096
READ, WRITE, FLUSH, REMAP = 0, 1, 2, 5
RECORD = struct.Struct("<QQQQQBBHHH")
# Largest payload of a block: 1,365 records.
BLOCK = 1365


def crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def records(path: Path) -> tuple[bytes, list[list[int]]]:
    data = path.read_bytes()
    head, at, found = data[:64], 64, []
    while at + 32 <= len(data) and data[at : at + 4] == b"OFTB":
        kind, count, length = struct.unpack_from("<HHI", data, at + 4)
        at += 32
        if kind == 1:
            found += [list(RECORD.unpack_from(data, at + n * RECORD.size)) for n in range(count)]
        at += length
    return head, found


def contents(path: Path) -> dict[tuple[int, int], deque[list[bytes]]]:
    """Digests of the pages of each write of the log, by its place, in the order of completion."""
    found = defaultdict(deque)
    with path.open("rb") as log:
        entries, sector = struct.unpack("<QI", log.read(28)[16:])
        at = sector
        for _ in range(entries):
            log.seek(at)
            first, count, flags, length = struct.unpack("<QQQQ", log.read(32))
            at += sector
            if flags & 8:
                at += -(-length // sector) * sector
            elif count and not flags & 4:
                log.seek(at)
                data = log.read(count * sector)
                pages = (data[n : n + PAGE] for n in range(0, len(data), PAGE))
                digest = lambda page: hashlib.blake2b(page, digest_size=16).digest()  # noqa: E731
                found[first * sector, count * sector].append([digest(page) for page in pages])
                at += count * sector
    return found


def split(record: list[int], pages: list[tuple[int | None, int]]) -> list[list[int]]:
    """A write as runs of pages that are written or have neighbouring sources."""
    out, run = [], []
    for source, page in pages:
        follows = run and (source is None) == (run[-1][0] is None) and (source is None or source == run[-1][0] + 1)
        if not follows:
            run = []
            out.append(run)
        run.append((source, page))
    made = []
    for run in out:
        new = list(record)
        new[2], new[3] = run[0][1] * PAGE, len(run) * PAGE
        if run[0][0] is not None:
            new[4], new[5], new[6] = run[0][0] * PAGE, REMAP, 0
        made.append(new)
    return made


def informed(all_records: list[list[int]], data: dict, marks: tuple[int, int]) -> tuple[list[list[int]], list[int], dict[str, int]]:
    holds: dict[int, bytes] = {}
    lies: dict[bytes, int] = {}
    made: list[tuple[int, list[int]]] = []
    moved: set[int] = set()
    counts = {"written": 0, "remapped": 0}
    zero = hashlib.blake2b(bytes(PAGE), digest_size=16).digest()
    for number, record in enumerate(all_records):
        if record[5] != WRITE or not data[record[2], record[3]]:
            made.append((number, record))
            continue
        pages = []
        for n, digest in enumerate(data[record[2], record[3]].popleft()):
            page = record[2] // PAGE + n
            source = lies.get(digest)
            if not marks[0] < number < marks[1] or digest == zero or holds.get(source) != digest or source == page:
                source = None
            if marks[0] < number < marks[1]:
                counts["written" if source is None else "remapped"] += 1
                moved |= set() if source is None else {source}
            pages.append((source, page))
            holds[page] = digest
            lies[digest] = page
        made += [(number, one) for one in split(record, pages)]
    kept, before = [], [0, 0]
    for number, record in made:
        touched = range(record[2] // PAGE, -(-(record[2] + record[3]) // PAGE))
        if record[5] == READ and marks[0] < number < marks[1] and record[3] and all(page in moved for page in touched):
            continue
        kept.append(record)
        for at, mark in enumerate(marks):
            before[at] += number < mark
    return kept, before, counts


def write(path: Path, head: bytes, all_records: list[list[int]]) -> None:
    # Sources of remaps have a field; digests are not written.
    head = head[:14] + struct.pack("<H", 0) + head[16:60]
    out = [head + struct.pack("<I", crc32c(head))]
    for first in range(0, len(all_records), BLOCK):
        part = all_records[first : first + BLOCK]
        payload = b"".join(RECORD.pack(*record) for record in part)
        front = b"OFTB" + struct.pack("<HHIQQ", 1, len(part), len(payload), part[0][0], 0)
        out.append(front + struct.pack("<I", crc32c(front + payload)) + payload)
    front = b"OFTB" + struct.pack("<HHIQQ", 3, 0, 0, 0, 0)
    out.append(front + struct.pack("<I", crc32c(front)))
    path.write_bytes(b"".join(out))


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    tape, out = Path(sys.argv[1]), Path(sys.argv[4])
    head, found = records(tape / "requests.oft")
    reads = [n for n, one in enumerate(found) if one[5] == READ and one[2] == one[3] == PAGE]
    marks = (reads[-int(sys.argv[2])], reads[-int(sys.argv[3])])
    kept, before, counts = informed(found, contents(tape / "writes.log"), marks)
    for name, end in zip(("run", "clean", "again"), [*before, len(kept)], strict=True):
        write(out.with_name(f"{out.name}-{name}.oft"), head, kept[:end])
        print(f"{name}: {end} requests")
    total = counts["written"] + counts["remapped"]
    print(f"pages written by cleaning: {total}, of them remapped: {counts['remapped']}")


if __name__ == "__main__":
    main()
