"""libCacheSim on the golden traces. Started by scripts/oracle-libcachesim.sh and scripts/bench-buffer.sh.

The two share no code and no author. They agree to all digits where a policy has one definition;
where the published text leaves something open, the limit below says how far apart they may be.
"""

import re
import subprocess
import sys
import time

import libcachesim
import numpy

# Record of libCacheSim's own trace format: time, object, size, position of the next access.
RECORD = numpy.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
NEVER = -1

SIZES = [1_000, 10_000]
# Our name, theirs, most that the miss ratios may differ. What is not named here has one definition.
# LIRS: the published text does not bound the ghosts. S3-FIFO: until the first eviction, this version
# lets what finds the small queue full into the main queue, where the first pages then stay long.
PEERS = [
    ("lru", libcachesim.LRU, 1e-5),
    ("fifo", libcachesim.FIFO, 1e-5),
    ("clock", libcachesim.Clock, 1e-5),
    ("2q", libcachesim.TwoQ, 1e-5),
    ("arc", libcachesim.ARC, 1e-5),
    ("sieve", libcachesim.Sieve, 1e-5),
    ("lirs", libcachesim.LIRS, 1e-4),
    ("s3-fifo", libcachesim.S3FIFO, 2e-3),
    ("min", libcachesim.Belady, 1e-5),
]

# Entries of G1L, and bits of the hash table. 24 is what libCacheSim takes unless told: 128 MiB for
# 32,768 entries. 17 was the fastest of 15, 17, 20 and 24.
SPEED_ENTRIES = 32_768
HASH_BITS = [24, 17]


def keys(oracle, trace, work, policies=()):
    """Pages of a golden trace as our example wrote them, and what it printed."""
    path = f"{work}/{trace}.keys"
    run = subprocess.run([oracle, trace, path, *policies], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"oracle: {oracle} failed with exit code {run.returncode}")
    return numpy.fromfile(path, dtype="<u4"), run.stdout


def next_accesses(pages):
    """Position of the next access to the same page, for each access."""
    # A stable sort by page puts the accesses of each page next to each other, in order.
    order = numpy.argsort(pages, kind="stable")
    following = numpy.full(len(pages), NEVER, dtype=numpy.int64)
    same = pages[order][:-1] == pages[order][1:]
    following[order[:-1][same]] = order[1:][same]
    return following


def write_trace(pages, following, work):
    path = f"{work}/trace.oracleGeneral"
    records = numpy.zeros(len(pages), dtype=RECORD)
    records["id"], records["size"], records["next"] = pages, 1, following
    records.tofile(path)
    return path


def reader(path):
    sizes = libcachesim.ReaderInitParam(ignore_obj_size=True)
    return libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE, sizes)


def compare(oracle, work):
    pages, printed = keys(oracle, "g1", work, [name for name, _, _ in PEERS])
    ours = {}
    for line in printed.splitlines():
        name, slots, misses, requests = line.split()
        ours[name, int(slots)] = int(misses) / int(requests)
    path = write_trace(pages, next_accesses(pages), work)
    print(f"libCacheSim {libcachesim.__version__}, golden trace G1, miss ratios")
    print(f"{'policy':8} {'entries':>8} {'onefold':>9} {'libCacheSim':>12} {'difference':>11} {'limit':>7}")
    wrong = 0
    for name, peer, limit in PEERS:
        for slots in SIZES:
            theirs, _ = peer(slots).process_trace(reader(path))
            found = ours[name, slots]
            difference = abs(found - theirs)
            verdict = "" if difference <= limit else "  DIFFERS"
            wrong += verdict != ""
            row = f"{name:8} {slots:8} {found:9.6f} {theirs:12.6f} {difference:11.6f} {limit:7.0e}"
            print(row + verdict)
    if wrong:
        sys.exit(f"oracle: {wrong} miss ratios differ by more than their limits")


def speed(oracle, work):
    pages, _ = keys(oracle, "g1l", work)
    # MIN, the only one that looks at the next access, is not measured.
    path = write_trace(pages, NEVER, work)
    with open(f"{work}/ours") as file:
        lines = re.findall(r"^(\S+) G1L read: (\S+) CPU ns", file.read(), re.MULTILINE)
    ours = {name: float(ns) for name, ns in lines}
    print(f"libCacheSim {libcachesim.__version__}, G1L, {SPEED_ENTRIES} entries, CPU ns/request;")
    print("its table of 2^24 buckets is its default, that of 2^17 its fastest")
    columns = " ".join(f"{f'theirs 2^{bits}':>12}" for bits in HASH_BITS)
    print(f"{'policy':8} {'onefold':>8} {columns} {'ratio':>12}")
    for name, peer, _ in PEERS:
        if name not in ours:
            continue
        theirs = []
        for bits in HASH_BITS:
            cache = peer(SPEED_ENTRIES, hashpower=bits)
            begin = time.thread_time_ns()
            cache.process_trace(reader(path))
            theirs.append((time.thread_time_ns() - begin) / len(pages))
        shown = " ".join(f"{ns:12.1f}" for ns in theirs)
        ratio = " - ".join(f"{ns / ours[name]:.1f}" for ns in reversed(theirs))
        print(f"{name:8} {ours[name]:8.1f} {shown} {ratio:>12}")


if __name__ == "__main__":
    mode, oracle, work = sys.argv[1:]
    {"compare": compare, "speed": speed}[mode](oracle, work)
