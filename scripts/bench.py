"""Whole-process measurements of the simulator. Started by scripts/bench.sh, which says what it does."""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

GIB = 1 << 30
# More than the peak memory of the devices of 4 and 64 TiB, which are written in order.
HUGE_BYTES = 3 << 30
# 64 TiB: 16 channels of 16 dies, and mapping units of 32 KiB, as units are numbered in 32 bits.
LARGEST = ["geometry.channels=16", "geometry.ways=16", "geometry.planes=4", "geometry.pages=1024",
           "geometry.blocks=4386", "ftl.indirection=32KiB", "capacity.logical=64TiB", "precondition.fill=1"]
TRACE = "traces/rec-rocksdb-ycsba-ext4.csv.zst"


class Process:
    """A finished run of the program: its output, user CPU seconds and peak memory."""

    def __init__(self, program, arguments):
        child = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # The output of a run is a few hundred KiB: more than a pipe holds, so it is read first.
        self.stdout, errors = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"bench: {' '.join(arguments)} failed:\n{errors.decode()}")
        self.user_s = usage.ru_utime
        self.peak_bytes = usage.ru_maxrss * 1024

    def json(self):
        return json.loads(self.stdout)


class Bench:
    def __init__(self, program, rounds):
        self.program = program
        self.rounds = rounds

    def sim(self, workload, *sets, preset="s1"):
        arguments = ["sim", "run", "--preset", preset, "--workload", workload, "--format", "json", "--quiet"]
        for one in sets:
            arguments += ["--set", one]
        return Process(self.program, arguments)

    def repeat(self, measure, rounds=None):
        return [measure() for _ in range(rounds or self.rounds)]

    def row(self, what, unit, values, goal=None, best=max, digits=1):
        """One line: the best value, the median, the goal."""
        low_is_good = best is min
        found = best(values)
        limit, verdict = "", ""
        if goal is not None:
            limit = f"{'<=' if low_is_good else '>='} {goal:g}"
            verdict = "yes" if (found <= goal if low_is_good else found >= goal) else "no"
        median = statistics.median(values)
        text = f"| {what} | {unit} | {found:.{digits}f} | {median:.{digits}f} | {limit} | {verdict} |"
        print(text, flush=True)

    def rates(self, what, workload, *sets, goal=None, program_goal=None):
        """Requests per CPU second of the measured part, and of the whole process."""

        def measure():
            process = self.sim(workload, *sets)
            result = process.json()
            requests = sum(result["host"][f"{op}_requests"] for op in ("read", "write", "trim", "flush"))
            pages = sum(result["flash"]["program_pages"].values())
            return requests / result["cpu_s"], requests / process.user_s, pages / result["cpu_s"]

        runs = self.repeat(measure)
        self.row(what, "M requests / CPU s", [run[0] / 1e6 for run in runs], goal)
        self.row(f"{what}, whole process", "M requests / user s", [run[1] / 1e6 for run in runs], goal)
        if program_goal is not None:
            self.row(what, "M programs / CPU s", [run[2] / 1e6 for run in runs], program_goal)

    def memory(self):
        """Peak memory of a full 64 GiB device beyond that of a tiny one, per physical page."""
        read_one = "randread,qd=1,requests=1"
        tiny = min(self.repeat(
            lambda: self.sim(read_one, "geometry.channels=1", "geometry.ways=1", "geometry.pages=16").peak_bytes))
        pages = 64 * GIB // 4096
        # What was written in order takes next to nothing; what was overwritten at random takes maps of 4 B per page.
        for share in ("0", "0.3", "1"):
            used = ["geometry.blocks=4096", f"precondition.overwrite={share}"]
            big = self.repeat(lambda used=used: self.sim(read_one, *used).peak_bytes, 1)
            self.row(f"memory, 64 GiB, {share} of it overwritten at random", "B / physical page",
                     [(peak - tiny) / pages for peak in big], 7, min, 2)

    def preconditioning(self, what, sets, goal, rounds=None, preset="s1"):
        def measure():
            process = self.sim("randread,qd=1,requests=1", *sets, preset=preset)
            return process.json()["precondition"]["cpu_s"], process.user_s, process.peak_bytes / 1e9

        runs = self.repeat(measure, rounds)
        self.row(f"preconditioning of {what}", "CPU s", [run[0] for run in runs], goal, min, 3)
        self.row(f"preconditioning of {what}, whole process", "user s", [run[1] for run in runs],
                 best=min, digits=3)
        self.row(f"memory, {what}", "GB", [run[2] for run in runs], best=min, digits=3)

    def huge(self):
        free = available_bytes()
        if free < HUGE_BYTES:
            print(f"| 4 TiB and 64 TiB devices | | skipped: {free / 1e9:.1f} GB of memory free, {HUGE_BYTES / 1e9:.1f} needed | | | |")
            return
        self.preconditioning("4 TiB", ["geometry.blocks=262144"], 15, rounds=1)
        self.preconditioning("64 TiB", LARGEST, 15, rounds=1, preset="qlc-16k")

    def traces(self):
        requests = json.loads(Process(
            self.program, ["trace", "info", TRACE, "--format", "json", "--quiet"]).stdout)["requests"]
        info = self.repeat(lambda: Process(self.program, ["trace", "info", TRACE, "--quiet"]).user_s)
        name = "statistics of the RocksDB trace (CSV, zstd)"
        self.row(name, "M requests / user s", [requests / max(s, 1e-3) / 1e6 for s in info])
        with tempfile.TemporaryDirectory() as folder:
            decoded, copy = os.path.join(folder, "a.oft"), os.path.join(folder, "b.oft")
            million = 5
            spec = f"randrw,rate=1M,requests={million}M"
            Process(self.program, ["trace", "generate", spec, "--to", "oft", "-o", decoded, "--size", "64GiB", "--quiet"])
            convert = ["trace", "convert", decoded, "--to", "oft", "--force", "-o", copy, "--quiet"]
            seconds = self.repeat(lambda: Process(self.program, convert).user_s)
            name = "decoded trace (OFT), checked, read and written again"
            self.row(name, "M requests / user s", [million / s for s in seconds])


def available_bytes():
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            names = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    except OSError:
        names = set()
    return ", ".join(sorted(names)) or platform.machine()


def heading(rounds):
    changed = " with changes" if command("git", "status", "--porcelain", "--untracked-files=no") else ""
    print(f"Machine: {processor()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}")
    print(f"Date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC; "
          f"commit {command('git', 'rev-parse', '--short', 'HEAD')}{changed}; "
          f"load {os.getloadavg()[0]:.1f} before the run")
    print("CPU s: CPU time of the simulating thread in the measured part, system time included (`cpu_s` of")
    print("the result). user s: user CPU time of the whole process, preconditioning included.")
    print("Device: s1, 8 x 2 dies, 4 GiB, unless said otherwise. Closed loop, queue depth 32.")
    print(f"Best and median of {rounds}.\n")
    print("| what | unit | best | median | goal | met |\n|---|---|---|---|---|---|", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one tenth of the requests, no devices of 4 and 64 TiB")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}, expected at least 1")
    bench = Bench(options.program, options.rounds)
    heading(options.rounds)
    many = "1M" if options.quick else "10M"
    bench.rates("random read", f"randread,qd=32,requests={many}", goal=20)
    bench.rates("fresh random write", "randwrite,qd=32,requests=900k", "precondition.fill=0", goal=20)
    bench.rates("fresh random write, 64 GiB", f"randwrite,qd=32,requests={many}",
                "precondition.fill=0", "geometry.blocks=4096", goal=20)
    bench.rates("random write, GC steady state", f"randwrite,qd=32,requests={many}",
                "precondition.overwrite=2", program_goal=15)
    bench.memory()
    bench.preconditioning("4 GiB", [], 0.05)
    if not options.quick:
        bench.huge()
    bench.traces()


if __name__ == "__main__":
    main()
