"""Kill a served device or volume under load and verify what it promised.

Several connections write, zero, trim and flush blocks at random; every block carries its number and its
version. Then the server dies by SIGKILL, is started again on the same image, and every block is
read back. A block may hold any version from the last durable one to the last one issued, and
nothing else: not an older one, not a mixture, not another block's.

What is durable follows the contract of the device: a flush covers every write that was acknowledged
before the flush was sent, on any connection; a FUA write covers itself.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbd

BLOCK = 4096
CONNECTIONS = 4
READY_SECONDS = 60.0
HEADER = struct.Struct("<8sQQQ")
MAGIC = b"OFCAMPGN"


def content(seed: int, block: int, version: int) -> bytes:
    """Bytes of a version of a block; version 0 is a block never written, which reads as zeroes."""
    if version == 0:
        return bytes(BLOCK)
    return HEADER.pack(MAGIC, seed, block, version) * (BLOCK // HEADER.size)


class Model:
    """What was issued, acknowledged and made durable for every block. Guarded by one lock."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.seed = seed
        self.lock = threading.Lock()
        self.durable = [0] * blocks
        self.acknowledged = [0] * blocks
        self.issued = [0] * blocks
        # What was issued before the last restart and not found then is lost for good.
        self.lost_below = [0] * blocks
        # Versions that were written as zeroes, per block; all others carry data.
        self.zeroed: list[set[int]] = [set() for _ in range(blocks)]
        self.flushes = 0
        self.writes = 0

    def bytes_of(self, block: int, version: int) -> bytes:
        return bytes(BLOCK) if version in self.zeroed[block] else content(self.seed, block, version)

    def issue(self, first: int, count: int, *, zero: bool) -> list[int]:
        with self.lock:
            for block in range(first, first + count):
                self.issued[block] += 1
                if zero:
                    self.zeroed[block].add(self.issued[block])
            return self.issued[first : first + count]

    def acknowledge(self, first: int, versions: list[int], *, durable: bool) -> None:
        with self.lock:
            self.writes += 1
            for block, version in enumerate(versions, first):
                self.acknowledged[block] = version
                if durable:
                    self.durable[block] = version

    def before_flush(self) -> list[int]:
        with self.lock:
            return self.acknowledged.copy()

    def after_flush(self, covered: list[int]) -> None:
        with self.lock:
            self.flushes += 1
            self.durable = [max(a, b) for a, b in zip(self.durable, covered, strict=True)]

    def verify(self, block: int, found: bytes) -> str | None:
        """Say what is wrong with a block, and take what is there as the new truth."""
        durable, issued = self.durable[block], self.issued[block]
        # The newest first, as it is the likeliest.
        newer = range(issued, max(durable, self.lost_below[block]), -1)
        for version in (*newer, durable):
            if found == self.bytes_of(block, version):
                # Version numbers go on, so that an old version never looks like a new one.
                self.durable[block] = self.acknowledged[block] = version
                self.lost_below[block] = issued
                return None
        magic, seed, number, version = HEADER.unpack_from(found)
        what = (
            f"version {version} of block {number} (seed {seed})"
            if magic == MAGIC
            else ("zeroes" if not any(found) else "foreign bytes")
        )
        return (
            f"block {block} holds {what}, expected version {self.durable[block]} (durable) to "
            f"{self.issued[block]} (issued) of block {block}"
        )


def work(
    uri: str,
    model: Model,
    blocks: range,
    flush_share: float,
    rng: random.Random,
    stop: threading.Event,
) -> None:
    """Write, zero, trim and flush one connection's blocks until the server is gone."""
    handle = nbd.NBD()
    try:
        handle.connect_uri(uri)
        while not stop.is_set():
            if rng.random() < flush_share:
                covered = model.before_flush()
                handle.flush()
                model.after_flush(covered)
                continue
            count = min(rng.choice((1, 1, 1, 4, 16)), len(blocks))
            first = rng.randrange(blocks.start, blocks.stop - count + 1)
            # Trims are checked like zeroes: the record of a trim is as durable as a write.
            kind = rng.choices(("write", "zero", "trim"), (18, 1, 1))[0]
            fua = rng.random() < flush_share
            flags = nbd.CMD_FLAG_FUA if fua else 0
            versions = model.issue(first, count, zero=kind != "write")
            if kind == "zero":
                handle.zero(count * BLOCK, first * BLOCK, flags)
            elif kind == "trim":
                handle.trim(count * BLOCK, first * BLOCK, flags)
            else:
                data = b"".join(content(model.seed, b, v) for b, v in enumerate(versions, first))
                handle.pwrite(data, first * BLOCK, flags)
            model.acknowledge(first, versions, durable=fua)
    except nbd.Error as error:
        # The server was killed; before that, an error is a failure.
        if not stop.is_set():
            print(f"crash campaign: a request failed before the kill: {error}", file=sys.stderr)
            os._exit(1)


class Server:
    """A served device as a child process."""

    def __init__(self, command: list[str], socket: Path, log: Path) -> None:
        socket.unlink(missing_ok=True)
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        deadline = time.monotonic() + READY_SECONDS
        while not self.answers(f"nbd+unix:///?socket={socket}"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.stderr.write(log.read_text(errors="replace")[-4000:])
                sys.exit(f"crash campaign: the server does not answer: {' '.join(command)}")
            time.sleep(0.02)

    @staticmethod
    def answers(uri: str) -> bool:
        handle = nbd.NBD()
        try:
            handle.connect_uri(uri)
            handle.shutdown()
        except nbd.Error:
            return False
        return True

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def verify_all(uri: str, model: Model) -> None:
    handle = nbd.NBD()
    handle.connect_uri(uri)
    span = 256
    problems = []
    for first in range(0, len(model.issued), span):
        count = min(span, len(model.issued) - first)
        data = bytes(handle.pread(count * BLOCK, first * BLOCK))
        for at in range(count):
            problem = model.verify(first + at, data[at * BLOCK : (at + 1) * BLOCK])
            if problem is not None:
                problems.append(problem)
    handle.shutdown()
    if problems:
        print("\n".join(problems[:10]), file=sys.stderr)
        sys.exit(f"crash campaign: {len(problems)} blocks are wrong, seed {model.seed}")


def load_and_kill(
    server: Server, uri: str, model: Model, flush_share: float, rng: random.Random
) -> None:
    stop = threading.Event()
    share = len(model.issued) // CONNECTIONS
    threads = []
    for number in range(CONNECTIONS):
        blocks = range(number * share, (number + 1) * share)
        own = random.Random(rng.random())
        thread = threading.Thread(target=work, args=(uri, model, blocks, flush_share, own, stop))
        thread.start()
        threads.append(thread)
    time.sleep(rng.uniform(0.05, 0.8))
    stop.set()
    server.kill()
    for thread in threads:
        thread.join()


def check(onefold: list[str], image: Path, beside: list[str], seed: int) -> None:
    """Let `check` look at the image that the killed server left."""
    command = [*onefold, "check", str(image), *beside]
    checked = subprocess.run(command, check=False, capture_output=True)
    if checked.returncode != 0:
        sys.stderr.buffer.write(checked.stdout + checked.stderr)
        sys.exit(f"crash campaign: check says {checked.returncode}, seed {seed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--onefold", type=Path, required=True, help="the onefold binary")
    parser.add_argument("--folder", type=Path, required=True, help="for image, socket and log")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kind",
        choices=("ssd", "volume", "zoned", "dmz"),
        default="ssd",
        help="what is served; zoned, dmz: a volume on a zoned SSD, whose `create` the arguments are for",
    )
    parser.add_argument("--cache-size", default="40MiB", help="of the regular device; dmz")
    parser.add_argument(
        "--cache-checksums", action="store_true", help="of all that the regular device holds; dmz"
    )
    parser.add_argument("create", nargs="*", help="arguments of its `create`, after `--`")
    parser.add_argument("--span", type=int, default=16384, help="blocks of 4 KiB under load")
    parser.add_argument(
        "--flush-share", type=float, default=0.05, help="of the requests; the same of FUA writes"
    )
    parser.add_argument(
        "--server", help="another server's command line, {socket} filled in; tests this program"
    )
    options = parser.parse_args()

    image = options.folder / "disk.img"
    socket = options.folder / "disk.sock"
    log = options.folder / "server.log"
    uri = f"nbd+unix:///?socket={socket}"
    noun = "ssd" if options.kind == "ssd" else "volume"
    onefold = [str(options.onefold), noun]
    # What every command on the volume needs to find its other device.
    beside = ["--cache", str(options.folder / "cache.img")] if options.kind == "dmz" else []
    if options.server:
        command = options.server.format(socket=socket).split()
    else:
        first = "volume" if options.kind == "volume" else "ssd"
        create = [str(options.onefold), first, "create", str(image), *options.create]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        if options.kind == "zoned":
            create = [*onefold, "create", str(image), "--size", f"{options.span * BLOCK}B"]
            subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        if options.kind == "dmz":
            create = [*onefold, "create", str(image), "--zoned", "dmz", *beside]
            create += ["--cache-size", options.cache_size]
            create += ["--cache-checksums"] if options.cache_checksums else []
            subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
        command = [*onefold, "serve", str(image), *beside, "--nbd", f"unix:{socket}"]
        command += ["--journal-range", "5MiB-7MiB"] if beside else []
        command += ["--latency", "none"] if options.kind == "ssd" else []

    # Reclaim, copies and aborts with a chunk that stays where it is, with a journal in zones of its own, and from one to the other.
    modes = [["--journal", mode] for mode in ("one", "set", "set")] if beside else [[]]

    rng = random.Random(options.seed)
    model = Model(options.span, options.seed)
    for kill in range(1, options.kills + 1):
        server = Server(command + modes[kill % len(modes)], socket, log)
        if kill > 1:
            verify_all(uri, model)
        load_and_kill(server, uri, model, options.flush_share, rng)
        if not options.server:
            check(onefold, image, beside, options.seed)
    server = Server(command + modes[0], socket, log)
    verify_all(uri, model)
    server.process.terminate()
    code = server.process.wait()
    if not options.server:
        if code != 0:
            sys.exit(f"crash campaign: the server ended with {code} on SIGTERM")
        check(onefold, image, beside, options.seed)
    print(
        f"crash campaign ok ({options.folder.name}): {options.kills} kills, {model.writes} acknowledged writes, "
        f"{model.flushes} flushes, every durable block intact, seed {options.seed}"
    )


if __name__ == "__main__":
    main()
