#!/usr/bin/env python3
"""Runs the simulator of two binaries on everything that it can be, and says where their results differ.

A change of the simulator's structure may change no result: all fields but CPU time and the version have to be equal to the last digit.
Every preset under three loads, every preset into garbage collection with every victim policy, devices in every way of buffering, remapping,
deduplication, placement, timing and faults, volumes and zoned volumes of every mode, stacks of several layers, tenants, traces in every mode of
replay, and runs with a warm-up.

    scripts/digests.py OLD NEW              paths of two binaries; ends with 1 if a result differs
    scripts/digests.py OLD NEW --only zoned those whose name has this in it
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

LOADS = {
    "writes": "randwrite,bs=4KiB,qd=32,requests=20k",
    "reads": "randread,bs=4KiB,qd=8,requests=20k",
    "mix": "mix,bs=4KiB:4/12KiB:1/2KiB:1,align=2KiB,qd=16,requests=20k,trim_share=0.05,flush_every=500",
    "blocks": "mix,bs=4KiB:4/12KiB:1,qd=16,requests=20k,trim_share=0.05,flush_every=100",
    "deep": "randwrite,bs=8KiB,qd=5000,requests=20k",
    "in-order": "write,bs=128KiB,qd=4,requests=2k",
    "sub-page": "mix,bs=512:3/1536:1/4KiB:1,align=512,qd=4,requests=20k,trim_share=0.1,flush_every=300",
    "durable": "randwrite,bs=4KiB,qd=3,requests=10k,fua_share=0.3,flush_every=50,trim_share=0.1",
    "paced": "mix,bs=4KiB:3/16KiB:1,rate=30000,requests=10k,trim_share=0.05",
}
# Loads of volumes and of devices in every way.
USUAL = ("writes", "reads", "mix", "blocks", "deep", "in-order")

# 240 log segments of 1 MiB on one channel of `s1`.
SMALL = [
    "geometry.channels=1",
    "geometry.ways=1",
    "geometry.blocks=280",
    "capacity.logical=240MiB",
    "precondition.fill=1",
]

VOLUMES = {
    "log": [],
    "log-complete": ["volume.ack=complete"],
    "log-hotcold": ["volume.streams=hot-cold", "volume.victim=cost-benefit"],
    "log-warm": ["run.warmup=1500", "run.window=900", "precondition.overwrite=0.5"],
    "log-unit": ["ftl.indirection=16KiB"],
    "log-search": ["volume.cpu=3us", "volume.cpu_search=200ns"],
    "log-remap": ["volume.clean_move=remap", "ftl.remap=lh"],
    "log-buffer": ["buffer.size=4MiB", "buffer.policy=lru"],
    "log-untimed": ["run.latency=none"],
    "sung": ["volume.mode=sung"],
    "han": ["volume.mode=han"],
    "han-small": ["volume.mode=han", "volume.op=0.5"],
}

ZONED = {
    "zn540": ("zn540", []),
    "femu-zns": ("femu-zns", []),
    "conventional": ("femu-zns", ["namespace.conventional=4", "capacity.logical=2GiB"]),
    "filled": ("femu-zns", ["precondition.fill=0.5"]),
    "log-on-zones": ("femu-zns", ["volume.mode=log", "volume.op=0.6"]),
    "log-on-some": ("femu-zns", ["volume.mode=log", "volume.op=0.6", "namespace.conventional=4"]),
    "dmz": ("choi2022", []),
    "dmz-filled": ("choi2022", ["precondition.fill=0.3"]),
    "dmz-warm": ("choi2022", ["run.warmup=1500", "run.window=200"]),
    "dmz-one": ("choi2022", ["zoned.journal=one", "zoned.journal_offset=1792MiB", "zoned.journal_size=64MiB"]),
    "dmz-set": ("choi2022", ["zoned.journal=set", "zoned.journal_offset=1792MiB", "zoned.journal_size=64MiB"]),
    "dmz-regular": ("choi2022-regular", []),
    "dmz-single": ("choi2022-single", []),
    "dmz-guest": ("dmz-guest", []),
    "dmz-log": ("choi2022", ["zoned.policy=log"]),
    "dmz-log-set": (
        "choi2022",
        ["zoned.policy=log", "zoned.journal=set", "zoned.journal_offset=1792MiB", "zoned.journal_size=64MiB"],
    ),
}

DEVICES = {
    "gc": ["precondition.fill=1", "precondition.overwrite=0.3"],
    "warm": ["run.warmup=1500", "run.window=200", "precondition.fill=1"],
    "dedup": ["dedup.fingerprints=100k", "ftl.remap=lh"],
    "buffer": ["buffer.size=4MiB", "buffer.policy=aoi"],
    "unit": ["ftl.indirection=16KiB", "precondition.fill=1"],
    "untimed": ["run.latency=none"],
}

# Ways of a device on its own, under loads that reach what they change.
WAYS = {
    **{f"buffer-{name}": ["buffer.size=2MiB", f"buffer.policy={name}"] for name in (
        "fifo", "2l", "pt-lru", "vbbms", "cflru", "lru-wsr", "fab", "bplru", "clock", "2q", "arc", "lirs", "s3-fifo", "w-tinylfu")},
    "buffer-protected": ["buffer.size=2MiB", "buffer.volatile=false"],
    "buffer-behind": ["buffer.size=2MiB", "buffer.writeback=async", "buffer.wb_slots=16"],
    **{f"remap-{name}": [f"ftl.remap={name}"] for name in ("gf", "gn", "ln", "lh", "opt")},
    **{f"dedup-{name}": ["ftl.remap=opt", f"dedup.scope={name}", "dedup.fingerprints=20k",
                         "dedup.content=exact_dup_ratio:ratio=0.4"] for name in ("writes", "reads", "all")},
    "streams-hot-cold": ["ftl.streams=4", "ftl.classifier=hot-cold"],
    "streams-auto": ["ftl.streams=4", "ftl.classifier=auto"],
    "streams-mixed": ["ftl.separate_gc=false"],
    "map-paged": ["ftl.map_cache=64KiB"],
    "unpaced": ["ftl.gc_pacing=false"],
    "idle": ["ftl.gc_idle=true"],
    "metadata": ["ftl.metadata=pages", "ftl.checkpoint=0.2", "ftl.trim_log=4KiB", "capacity.logical=200MiB"],
    "wear": ["ftl.wear_threshold=2"],
    "worn": ["ftl.endurance=30"],
    "die-wide": ["geometry.channels=2", "geometry.ways=2", "geometry.planes=2", "geometry.blocks=40", "geometry.superblock=device"],
    "planes": ["geometry.planes=2", "geometry.blocks=140", "timing.plane_parallel=true"],
    "wide-page": ["geometry.page=16KiB", "geometry.pages=64"],
    "wide-unit": ["ftl.indirection=32KiB", "geometry.page=16KiB", "geometry.pages=64"],
    "cache-commands": ["timing.cache_read=true", "timing.cache_program=true", 'timing.program=["100us", "400us"]'],
    "read-priority": ["timing.read_priority=2ms", "geometry.ways=2", "geometry.blocks=140"],
    "narrow-link": ["timing.link=200MB/s", "timing.command=2us", "timing.command_page=1us", "timing.firmware_read=3us"],
    "faults": ["faults.read=1e-4", "faults.program=1e-5", "faults.erase=1e-4", "capacity.logical=200MiB", "faults.slow=0.01", "ftl.relocate=true"],
    "die-fails": ["geometry.ways=2", "geometry.blocks=140", "faults.die=500"],
}

TENANTS = """
extends = "preset:s1"
{top}

[geometry]
channels = 1
ways = 1
blocks = 280

[capacity]
logical = "240MiB"

{more}

[[tenant]]
name = "a"
workload = "randwrite,bs=4KiB,qd=8,requests=6k"
range = "0..100MiB"

[[tenant]]
name = "b"
workload = "randread,bs=4KiB,qd=2,requests=6k"
range = "100MiB..180MiB"
weight = 3

[[tenant]]
name = "c"
workload = "randwrite,bs=4KiB,rate=20000,requests=3k"
range = "0..180MiB"
start = "2ms"
"""

# Places of stacks that have no short form, and the stacks made of them.
PLACES = {
    "flash": 'kind = "ssd"\ngeometry = { channels = 1, ways = 1, blocks = 280 }\ncapacity.logical = "240MiB"',
    "cache": 'kind = "ssd"\nextends = "preset:choi2022-regular"',
    "zones": 'kind = "zns"\nextends = "preset:choi2022"\ngeometry = { pages = 64, blocks = 257 }\nnamespace.zone_size = "16MiB"',
    "lower": 'kind = "log"\nvolume.op = 0.3\non = "flash"',
    "placed": 'kind = "dmz"\non = ["cache", "zones"]',
    "cached": 'kind = "dmz"\nzoned.regular_depth = 4\non = ["lower", "zones"]',
    "log": 'kind = "log"\nvolume.op = 0.3',
    "complete": 'kind = "log"\nvolume.op = 0.3\nvolume.ack = "complete"',
    "sung": 'kind = "sung"',
}
STACKS = {
    "log-on-log": (["flash", "lower", "log"], 0.5),
    "complete-on-log": (["flash", "lower", "complete"], 0.5),
    "sung-on-log": (["flash", "lower", "sung"], 0.5),
    "log-on-dmz": (["cache", "zones", "placed", "log"], 0.02),
    "dmz-on-log": (["flash", "lower", "zones", "cached"], 0.01),
    "log-on-dmz-on-log": (["flash", "lower", "zones", "cached", "complete"], 0.01),
}


def stack(places, fill):
    """The configuration of a stack, whose top may not say on what it lies."""
    text = f"[precondition]\nfill = {fill}\n"
    for number, name in enumerate(places):
        needs = PLACES[name].startswith(('kind = "log"', 'kind = "sung"')) and "\non = " not in PLACES[name]
        on = f'on = "{places[number - 1]}"\n' if needs else ""
        text += f'[[stack]]\nname = "{name}"\n{PLACES[name]}\n{on}'
    return text


def runs(folder):
    """Name and arguments of every run."""
    for preset in sorted(path.stem for path in (ROOT / "presets").glob("*.toml")):
        for load in ("writes", "reads", "mix"):
            yield f"preset/{preset}/{load}", ["--preset", preset, "--workload", LOADS[load]]
        for victim in ("greedy", "cost-benefit", "fifo", "d-choices", "random"):
            filled = ["precondition.fill=1", "precondition.overwrite=0.3", "geometry.blocks=64", f"ftl.victim={victim}"]
            chosen = [part for one in filled for part in ("--set", one)]
            yield f"victim/{preset}/{victim}", ["--preset", preset, *chosen, "--workload", LOADS["mix"]]
    small = [part for one in SMALL for part in ("--set", one)]
    for name, sets in WAYS.items():
        chosen = [part for one in ["precondition.overwrite=0.2", *sets] for part in ("--set", one)]
        for load in ("writes", "mix", "sub-page", "durable", "paced"):
            yield f"way/{name}/{load}", ["--preset", "s1", *small, *chosen, "--workload", LOADS[load]]
    for kind, table, more in (("device", DEVICES, []), ("volume", VOLUMES, ["volume.mode=log"])):
        for name, sets in table.items():
            chosen = [part for one in more + sets for part in ("--set", one)]
            for load in USUAL:
                yield f"{kind}/{name}/{load}", ["--preset", "s1", *small, *chosen, "--workload", LOADS[load]]
    for name, (preset, sets) in ZONED.items():
        chosen = [part for one in sets for part in ("--set", one)]
        for load in ("writes", "blocks", "deep", "in-order"):
            yield f"zoned/{name}/{load}", ["--preset", preset, *chosen, "--workload", LOADS[load]]
    for trace in sorted((ROOT / "traces").glob("*.zst")):
        for mode in ("closed", "open", "bounded"):
            how = ["--trace", str(trace), "--set", f"run.mode={mode}", "--fit", "compact"]
            yield f"trace/{trace.name}/{mode}", ["--preset", "tlc", *how]
            log = ["--set", "volume.mode=log"]
            yield f"trace/{trace.name}/{mode}/log", ["--preset", "tlc", *log, *how]
    for name, more in (("device", ""), ("volume", '[volume]\nmode = "log"'), ("complete", '[volume]\nmode = "log"\nack = "complete"')):
        path = folder / f"{name}.toml"
        path.write_text(TENANTS.format(top="", more=more))
        yield f"tenants/{name}", ["-c", str(path)]
    for name, (places, fill) in STACKS.items():
        path = folder / f"{name}.toml"
        path.write_text(stack(places, fill))
        for load in ("writes", "blocks", "reads", "deep"):
            yield f"stack/{name}/{load}", ["-c", str(path), "--workload", LOADS[load]]


def digest(binary, arguments):
    """What a run comes to, and whether it ran."""
    command = [binary, "sim", "run", "--quiet", "--seed", "5", "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr, False
    result = json.loads(done.stdout)
    del result["onefold"], result["cpu_s"]
    (result.get("precondition") or {}).pop("cpu_s", None)
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest(), True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="", metavar="TEXT")
    arguments = parser.parse_args()
    equal = different = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, run in runs(pathlib.Path(folder)):
            if arguments.only not in name:
                continue
            (old, ran), (new, _) = digest(arguments.old, run), digest(arguments.new, run)
            if old != new:
                different += 1
                print(f"{name}: differs: {old.strip()[:200]} | {new.strip()[:200]}", flush=True)
            elif ran:
                equal += 1
            else:
                refused += 1
                print(f"{name}: both refuse it: {old.strip()[:200]}", flush=True)
    print(f"{equal} results equal, {different} different, {refused} refused by both")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
