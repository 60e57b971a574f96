"""A served drive or volume with a file system on it, and the server's own counters."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE_BYTES = 4096


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Runs a command and returns what it printed. A failure ends the program with what it said."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"factor: {' '.join(map(str, command))}: {done.stderr or done.stdout}")
    return done.stdout


@dataclass
class Counters:
    """Bytes that the file system sent, bytes that flash programmed, flushes, and bytes by hop and cause."""

    sent: int
    programmed: int
    flushes: int
    hops: dict[str, int]

    def since(self, before: Counters) -> Counters:
        hops = {hop: count - before.hops.get(hop, 0) for hop, count in self.hops.items()}
        return Counters(
            self.sent - before.sent,
            self.programmed - before.programmed,
            self.flushes - before.flushes,
            {hop: count for hop, count in hops.items() if count},
        )


class Served:
    """A served image behind a loop device."""

    def __init__(
        self, onefold: str, image: Path, folder: Path, *, volume: bool, options: tuple[str, ...] = ()
    ) -> None:
        self.onefold, self.image, self.volume, self.options = onefold, image, volume, options
        self.fuse, self.mount, self.log = folder / "fuse", folder / "mount", folder / "log"
        for path in (self.fuse, self.mount):
            path.mkdir(exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def __enter__(self) -> Served:
        kind = ["volume" if self.volume else "ssd", "serve"]
        command = [self.onefold, *kind, str(self.image), "--fuse", str(self.fuse), *self.options]
        log = self.log.open("w")
        self.server = subprocess.Popen([*command, "--ui", f"127.0.0.1:{self.port}"], stdout=log, stderr=log)
        for _ in range(300):
            if (self.fuse / "disk").exists():
                break
            if self.server.poll() is not None:
                sys.exit(f"factor: {self.log.read_text()}")
            time.sleep(0.1)
        disk = self.fuse / "disk"
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", disk).strip()
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.mount], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", self.loop], check=False)
        time.sleep(0.2)
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()

    def count(self) -> Counters:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/stats") as answer:
            stats = json.load(answer)
        pages = stats["device"]["nand_written_pages"]
        hops = {f"flash {cause}": count * PAGE_BYTES for cause, count in pages.items()}
        volume = stats["device"].get("volume") or {}
        hops |= {f"log {cause}": count for cause, count in volume.get("sent_bytes", {}).items()}
        front = stats["frontends"]["fuse"]
        programmed = sum(pages.values()) * PAGE_BYTES
        return Counters(front["write"]["bytes"], programmed, front["flush"]["requests"], hops)

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        run("mount", self.loop, self.mount)
        yield self.mount
        run("umount", self.mount)
