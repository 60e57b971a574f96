"""Damages one flash page of a served drive: that which holds a block, and no other page with the same content."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

PAGE = 4096

Read = Callable[[int], bytes | None]


def places(file: int, content: bytes) -> Iterator[int]:
    """Where pages with this content lie in a file. Holes are passed over."""
    at, end = 0, os.fstat(file).st_size
    while at < end:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError:
            # Nothing but a hole is left.
            return
        data = os.pread(file, os.lseek(file, at, os.SEEK_HOLE) - at, at)
        found = data.find(content)
        while found >= 0:
            if (at + found) % PAGE == 0:
                yield at + found
            found = data.find(content, found + 1)
        at += len(data)


def damage(image: Path, block: int, read: Read) -> None:
    """Flips a bit of the page of a block of 4 KiB.

    `read` gives a block as the drive has it, past all caches, or None if the drive says that it cannot be read. Pages with the content
    of the block are tried one after the other until the block cannot be read; the others are left as they were.
    """
    content = read(block)
    if content is None:
        raise RuntimeError(f"block {block} cannot be read as it is")
    file = os.open(image, os.O_RDWR)
    try:
        for at in places(file, content):
            os.pwrite(file, bytes([content[0] ^ 1]), at)
            if read(block) is None:
                return
            os.pwrite(file, content[:1], at)
    finally:
        os.close(file)
    raise RuntimeError(f"no flash page holds block {block}")
