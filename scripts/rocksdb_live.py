"""A live RocksDB beside a hot volume, on a served device. Started by scripts/rocksdb-live.sh.

`run` puts values into a store, and after every few puts reads or writes one page of the volume, past
the page cache. `stats` prints what the buffer of the device counted. `split` cuts a recorded trace
at an address into the two tenants. `study` writes the study that replays them, `table` its results
beside those of the live runs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import mmap
import os
import random
import urllib.request
from pathlib import Path

KEYS = 100_000
VALUE = 1000
PAGE = 4096
HOT_PAGES = 4096
# Popularity of the pages of the volume: Zipf with this exponent.
THETA = 0.99
HOT_WRITES = 0.7
MIB = 1 << 20
SECTOR = 512


def store_options() -> object:
    """Levels small enough that a short run merges a lot; no compression, no page cache for files."""
    from rocksdict import DBCompressionType, Options

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(16 * MIB)
    options.set_target_file_size_base(16 * MIB)
    options.set_max_bytes_for_level_base(48 * MIB)
    options.set_max_bytes_for_level_multiplier(4)
    options.set_level_compaction_dynamic_level_bytes(False)
    options.set_compression_type(DBCompressionType.none())
    options.set_use_direct_io_for_flush_and_compaction(True)
    options.set_use_direct_reads(True)
    options.set_wal_bytes_per_sync(MIB // 2)
    options.set_recycle_log_file_num(0)
    return options


def run(store: Path, volume: Path, puts: int, every: int, seed: int) -> None:
    from rocksdict import Rdict

    rng = random.Random(seed)
    weights = itertools.accumulate((rank + 1) ** -THETA for rank in range(HOT_PAGES))
    weights = list(weights)
    places = rng.sample(range(HOT_PAGES), HOT_PAGES)
    data = mmap.mmap(-1, PAGE)  # direct I/O wants aligned memory
    hot = os.open(volume, os.O_RDWR | os.O_DIRECT)
    database = Rdict(str(store), store_options())
    for number in range(puts):
        key = rng.randrange(KEYS).to_bytes(8, "big") * 2
        database[key] = rng.randbytes(VALUE)
        if number % every == 0:
            place = rng.choices(places, cum_weights=weights)[0] * PAGE
            if rng.random() < HOT_WRITES:
                data[:] = rng.randbytes(PAGE)
                os.pwrite(hot, data, place)
            else:
                os.preadv(hot, [data], place)
    database.close()
    os.close(hot)


def stats(address: str) -> None:
    """Hits and accesses, read and written pages together."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()

    def total(name: str) -> int:
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))

    hits = total("onefold_buffer_hits_total")
    print(hits, hits + total("onefold_buffer_misses_total"))


def split(trace: Path, border: int, folder: Path) -> None:
    """The requests below and above an address, those of the volume moved to address 0."""
    sent = [0, 0]
    with trace.open() as lines, (folder / "store.csv").open("w") as store:
        with (folder / "volume.csv").open("w") as volume:
            head = next(lines)
            store.write(head)
            volume.write(head)
            for line in lines:
                time, op, sector, count, rest = line.split(",", 4)
                of_volume = op in "RWDZ" and int(sector) * SECTOR >= border
                if op in "RW":
                    sent[of_volume] += int(count) * SECTOR
                if of_volume:
                    sector = str(int(sector) - border // SECTOR)
                (volume if of_volume else store).write(",".join((time, op, sector, count, rest)))
    print(*sent)


STUDY = """schema = "onefold.study/1"
name = "rocksdb-live"
device = "{device}B"
sizes = ["{size}"]
policies = [{policies}]
bounds = ["alone", "min-alone"]
[[workload]]
name = "live"
[[workload.source]]
name = "RocksDB"
trace = "store.csv"
format = "onefold-csv"
share = {store}
[[workload.source]]
name = "volume"
trace = "volume.csv"
format = "onefold-csv"
share = {volume}
offset = "{border}B"
role = "target"
"""


def study(folder: Path, device: int, border: int, size: str, sent: list[int], policies: list[str]) -> None:
    shares = {"store": sent[0] / MIB, "volume": sent[1] / MIB}
    # Labelled as asked for, so that the table finds them again.
    texts = (json.dumps(policy) for policy in policies)
    chosen = ", ".join(f"{{policy = {text}, label = {text}}}" for text in texts)
    text = STUDY.format(device=device, border=border, size=size, policies=chosen, **shares)
    (folder / "study.toml").write_text(text)


def table(results: Path, live: Path) -> None:
    """One line per policy: live hits of everything, replayed hits of everything and of the volume."""
    counted = dict(line.split(maxsplit=1) for line in live.read_text().splitlines())
    print(f"{'policy':14} {'live, both':>12} {'replay, both':>13} {'replay, volume':>15}")
    for row in json.loads(results.read_text())["rows"]:
        if row["error"]:
            print(f"{row['label']:14} {row['error']}")
            continue

        def ratio(tenants: list[dict]) -> str:
            of = [tenant[op] for tenant in tenants for op in ("reads", "writes")]
            pages = sum(access["pages"] for access in of)
            return f"{100 * sum(access['hits'] for access in of) / pages:.2f} %" if pages else "-"

        both = "-" if row["bound"] else ratio(row["tenants"])
        measured = "-"
        if row["label"] in counted:
            hits, accesses = map(int, counted[row["label"]].split())
            measured = f"{100 * hits / accesses:.2f} %"
        volume = ratio([tenant for tenant in row["tenants"] if tenant["target"]])
        print(f"{row['label']:14} {measured:>12} {both:>13} {volume:>15}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("run")
    one.add_argument("store", type=Path)
    one.add_argument("volume", type=Path)
    one.add_argument("--puts", type=int, default=400_000)
    one.add_argument("--every", type=int, default=32)
    one.add_argument("--seed", type=int, default=0)
    actions.add_parser("stats").add_argument("address")
    one = actions.add_parser("split")
    one.add_argument("trace", type=Path)
    one.add_argument("border", type=int)
    one.add_argument("folder", type=Path)
    one = actions.add_parser("study")
    one.add_argument("folder", type=Path)
    one.add_argument("device", type=int)
    one.add_argument("border", type=int)
    one.add_argument("size")
    one.add_argument("sent", type=int, nargs=2)
    one.add_argument("policies", nargs="+")
    one = actions.add_parser("table")
    one.add_argument("results", type=Path)
    one.add_argument("live", type=Path)
    options = vars(parser.parse_args())
    globals()[options.pop("action")](**options)


if __name__ == "__main__":
    main()
