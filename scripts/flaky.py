"""Writes checked blocks to a volume or a device whose backing fails for a while and heals, again and again.

The backing is a file behind nbdkit's `error` filter, which fails requests at random while a file exists, as a file of nbdfuse.
Each round has some seconds of errors and some without. A read gives the right bytes or an error, each request is answered, what a flush
covered stays, and after healing writes succeed, without a restart. At the end the server is stopped and the device is read once more.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbd
from crash_campaign import BLOCK, Model, Server, content

# A request that takes longer hangs. Errors are told after a few seconds.
ANSWERED_SECONDS = 60
# After the backing healed writes succeed within that time.
HEALED_SECONDS = 150
FLUSH_EVERY = 30


class Watch:
    """Ends the program if a request is not answered."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.what = ""
        threading.Thread(target=self.look, daemon=True).start()

    def look(self) -> None:
        while True:
            time.sleep(1)
            since = self.since
            if since is not None and time.monotonic() - since > ANSWERED_SECONDS:
                print(f"flaky: {self.what} hangs", file=sys.stderr)
                os._exit(1)


class Backing:
    """A file that fails while `errors` exists."""

    def __init__(self, folder: Path, rates: dict[str, str]) -> None:
        self.errors = folder / "errors"
        below, mount = folder / "below", folder / "mount"
        mount.mkdir()
        self.path = mount / "disk"
        filters = [f"error-{kind}-rate={rate}" for kind, rate in rates.items()]
        nbdkit = ["nbdkit", "-s", "--filter=error", "file", str(below), *filters]
        command = ["nbdfuse", str(self.path), "--command", *nbdkit, f"error-file={self.errors}"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self.path.exists():
            if time.monotonic() > deadline:
                sys.exit("flaky: nbdfuse does not serve the backing")
            time.sleep(0.05)

    def fail(self, *, on: bool) -> None:
        if on:
            self.errors.touch()
        else:
            self.errors.unlink(missing_ok=True)

    def close(self) -> None:
        self.fail(on=False)
        subprocess.run(["fusermount3", "-u", str(self.path.parent)], check=False)
        self.process.wait()


class Client:
    """One client, which checks what it reads."""

    def __init__(self, uri: str, model: Model, rng: random.Random, watch: Watch) -> None:
        self.model, self.rng, self.watch = model, rng, watch
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.requests = 0
        self.failed = 0
        # What a failed write left may be there or not.
        self.unsure: set[int] = set()

    def request(self, what: str, request: object) -> bool:
        self.requests += 1
        self.watch.what = what
        self.watch.since = time.monotonic()
        try:
            request()  # type: ignore[operator]
        except nbd.Error as error:
            if error.errnum not in (errno.EIO, errno.ENOSPC):
                sys.exit(f"flaky: {what}: {error}")
            if error.errnum == errno.ENOSPC:
                sys.exit(f"flaky: {what}: the volume is not full: {error}")
            self.failed += 1
            return False
        finally:
            self.watch.since = None
        return True

    def write(self) -> bool:
        count = self.rng.choice((1, 1, 4, 16))
        first = self.rng.randrange(len(self.model.issued) - count)
        versions = self.model.issue(first, count, zero=False)
        pairs = enumerate(versions, first)
        data = b"".join(content(self.model.seed, block, version) for block, version in pairs)
        if not self.request("a write", lambda: self.handle.pwrite(data, first * BLOCK)):
            self.unsure.update(range(first, first + count))
            return False
        self.unsure.difference_update(range(first, first + count))
        self.model.acknowledge(first, versions, durable=False)
        return True

    def read(self) -> bool:
        first = self.rng.randrange(len(self.model.issued) - 4)
        return self.check(first, 4)

    def check(self, first: int, count: int) -> bool:
        found = bytearray()
        if not self.request(
            "a read", lambda: found.extend(self.handle.pread(count * BLOCK, first * BLOCK))
        ):
            return False
        for block in range(first, first + count):
            data = bytes(found[(block - first) * BLOCK : (block - first + 1) * BLOCK])
            newest = self.model.acknowledged[block]
            versions = [newest]
            if block in self.unsure:
                versions = list(range(newest, self.model.issued[block] + 1))
            if not any(data == self.model.bytes_of(block, version) for version in versions):
                sys.exit(f"flaky: block {block} is none of the versions {versions[:5]}")
        return True

    def flush(self) -> bool:
        covered = self.model.before_flush()
        if not self.request("a flush", self.handle.flush):
            return False
        self.model.after_flush(covered)
        return True

    def work(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.requests % FLUSH_EVERY == 0:
                self.flush()
            elif self.rng.random() < 0.6:
                self.write()
            else:
                self.read()

    def heal(self) -> None:
        """Writes and flushes until both succeed, then everything has to."""
        end = time.monotonic() + HEALED_SECONDS
        while not (self.write() and self.flush()):
            if time.monotonic() > end:
                sys.exit("flaky: the backing is whole, and writes still fail")
            time.sleep(0.1)

    def check_all(self) -> int:
        """Reads all blocks. Those of which a read failed are read once more a while later."""
        bad = [at for at in range(0, len(self.model.issued), 16) if not self.check(at, 16)]
        if bad:
            time.sleep(5)
        lost = [at for at in bad if not self.check(at, 16)]
        return len(lost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onefold", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", action="append", default=[], metavar="KIND=RATE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noun", default="volume", choices=("volume", "ssd"))
    parser.add_argument("--blocks", type=int, default=20000)
    parser.add_argument("--cache", metavar="SIZE", help="what fails is a cache device of this size")
    parser.add_argument(
        "--image", action="store_true", help="the volume lies on an image; the arguments are those of `ssd create`"
    )
    parser.add_argument("create", nargs="*", help="arguments of `create`")
    options = parser.parse_args()

    rates = dict(rate.split("=", 1) for rate in options.rate)
    noun, below = [options.onefold, options.noun], str(options.folder / "below")
    create = [*noun, "create", below, *options.create]
    if options.cache:
        # Of a volume of policy dmz: the zones behind the cache do not fail.
        zones = str(options.folder / "zones")
        drive = [options.onefold, "ssd", "create", zones, *options.create]
        subprocess.run(drive, check=True, stdout=subprocess.DEVNULL)
        create = [*noun, "create", zones, "--zoned", "dmz"]
        create += ["--cache", below, "--cache-size", options.cache]
    if options.image:
        drive = [options.onefold, "ssd", "create", below, *options.create]
        subprocess.run(drive, check=True, stdout=subprocess.DEVNULL)
        create = [*noun, "create", below]
    subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
    backing = Backing(options.folder, rates)
    served = [zones, "--cache", str(backing.path)] if options.cache else [str(backing.path)]
    socket, log = options.folder / "nbd", options.folder / "log"
    command = [*noun, "serve", *served, "--nbd", f"unix:{socket}"]
    command += ["--control", str(options.folder / "control")]
    uri = f"nbd+unix:///?socket={socket}"
    server = Server(command, socket, log)
    model, rng = Model(options.blocks, options.seed), random.Random(options.seed)
    client = Client(uri, model, rng, Watch())
    end = time.monotonic() + options.seconds
    rounds = 0
    while time.monotonic() < end:
        backing.fail(on=True)
        client.work(rng.uniform(0.5, 6))
        backing.fail(on=False)
        client.heal()
        client.work(rng.uniform(0.5, 3))
        rounds += 1
    failed = client.failed
    client.heal()
    lost = client.check_all()
    client.handle.shutdown()
    server.process.terminate()
    if server.process.wait() != 0:
        sys.stderr.write(log.read_text(errors="replace")[-4000:])
        sys.exit(f"flaky: the server ended with {server.process.returncode}")
    server = Server(command, socket, log)
    again = Client(uri, model, rng, client.watch)
    again.unsure = client.unsure
    lost += again.check_all()
    again.handle.shutdown()
    server.process.terminate()
    server.process.wait()
    backing.close()
    if lost:
        sys.exit(f"flaky: {lost} pieces cannot be read although the backing is whole")
    print(
        f"{rounds} rounds of errors, {client.requests} requests, {failed} of them failed: "
        f"each was answered, {model.flushes} flushes, no block lost or wrong"
    )


if __name__ == "__main__":
    main()
