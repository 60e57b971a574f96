"""Speed of a volume on a real file. Started by scripts/bench-volume.sh, which says what it does."""

import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path(sys.argv[1])
FOLDER = sys.argv[2] if len(sys.argv) > 2 else None
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5


def fio(*options):
    """The job of a run of fio: MiB/s and the share of a CPU that fio took."""
    base = ["fio", "--name=bench", "--time_based", f"--runtime={SECONDS}", "--output-format=json"]
    text = subprocess.run([*base, *options], check=True, capture_output=True, text=True).stdout
    job = json.loads(text[text.index("{") :])["jobs"][0]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100
    return {
        "mib_s": (job["write"]["bw_bytes"] + job["read"]["bw_bytes"]) / (1 << 20),
        "iops": job["write"]["iops"] + job["read"]["iops"],
        "cpu": cpu,
    }


def sequential(path, *more):
    ring = ["--ioengine=io_uring", "--direct=1", "--iodepth=32"]
    return fio(f"--filename={path}", "--size=1g", "--rw=write", "--bs=1m", *ring, *more)


def in_process(path, *how):
    program = [PROGRAMS / "examples" / "volume", path, str(SECONDS), "1", *how]
    return json.loads(subprocess.run(program, check=True, capture_output=True).stdout)


class Server:
    """`onefold volume serve` on a Unix socket."""

    def __init__(self, path, socket):
        program = [PROGRAMS / "onefold", "volume", "serve", path, "--nbd", f"unix:{socket}", "--quiet"]
        self.process = subprocess.Popen(program)
        while not os.path.exists(socket):
            if self.process.poll() is not None:
                sys.exit("bench-volume: the server did not start")
            time.sleep(0.05)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            sys.exit("bench-volume: the server failed")


def over_nbd(server, socket, rw):
    before = server.cpu_seconds()
    options = ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--bs=4k", "--iodepth=128"]
    result = fio(*options, "--size=1g", f"--rw={rw}")
    return result | {"server_cpu": (server.cpu_seconds() - before) / SECONDS}


def median(rows, key):
    return statistics.median(row[key] for row in rows)


WAYS = ["uring direct", "uring no-trim", "threads direct", "threads buffered"]


def report(rows):
    """`waited`: share of the time in which the writer had to wait for the backing. Where that is small, the CPU is the limit."""
    print("| 4 KiB random writes | user MiB/s | sent MiB/s | of fio's | WAF_host | waited | CPUs | CPU ms per GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ["sequential", "sequential, flushed"]:
        speed, cpu = (median(rows[name], key) for key in ("mib_s", "cpu"))
        share = statistics.median(
            row["mib_s"] / other["mib_s"] for row, other in zip(rows[name], rows["sequential"], strict=True)
        )
        print(f"| fio, {name} | {speed:.0f} | | {share:.2f} | | | {cpu:.2f} | {cpu / speed * 1024e3:.0f} |")
    for how in WAYS:
        user, sent, waf, waited, cpu = (
            median(rows[how], key) for key in ("user_mib_s", "sent_mib_s", "waf", "waited", "write_cpu")
        )
        share = statistics.median(
            row["sent_mib_s"] / other["mib_s"]
            for row, other in zip(rows[how], rows["sequential"], strict=True)
        )
        cells = [f"{user:.0f}", f"{sent:.0f}", f"{share:.2f}", f"{waf:.3f}", f"{waited:.2f}", f"{cpu:.2f}"]
        print(f"| in process, {how} | {' | '.join(cells)} | {cpu / user * 1024e3:.0f} |")
    nbd = rows["nbd randwrite"]
    user, server, client = (median(nbd, key) for key in ("mib_s", "server_cpu", "cpu"))
    share = statistics.median(
        row["mib_s"] / other["mib_s"] for row, other in zip(nbd, rows["sequential"], strict=True)
    )
    print(
        f"| NBD, depth 128 | {user:.0f} | | {share:.2f} | | | {server:.2f} + fio {client:.2f} | "
        f"{server / user * 1024e3:.0f} |"
    )
    print()
    print("| 4 KiB random reads, one at a time | with us | without us | with / without, mean | median |")
    print("|---|---|---|---|---|")
    # Through the page cache the two read from different parts of it, which compares nothing.
    for how in ["uring direct", "threads direct"]:
        pairs = rows[how]
        mean = statistics.median(row["read_us"] / row["bypass_us"] for row in pairs)
        half = statistics.median(row["read_median_us"] / row["bypass_median_us"] for row in pairs)
        with_us, without = median(pairs, "read_us"), median(pairs, "bypass_us")
        print(f"| {how} | {with_us:.2f} | {without:.2f} | {mean:.4f} | {half:.4f} |")
    print()
    print("| 4 KiB random reads per second, 8 threads | with us | without us | with / without |")
    print("|---|---|---|---|")
    for how in ["uring direct", "threads direct"]:
        share = statistics.median(row["deep_reads"] / row["deep_bypass"] for row in rows[how])
        deep, bypass = median(rows[how], "deep_reads"), median(rows[how], "deep_bypass")
        print(f"| {how} | {deep:.0f} | {bypass:.0f} | {share:.4f} |")
    reads = rows["nbd randread"]
    cpu = f"server {median(reads, 'server_cpu'):.2f}, fio {median(reads, 'cpu'):.2f}"
    print(f"\nNBD random reads, depth 128, one connection: {median(reads, 'iops'):.0f} IOPS (CPUs: {cpu})")


def main():
    rows = {}
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="bench-volume-") as folder:
        path, plain, socket = (os.path.join(folder, name) for name in ("volume", "plain", "nbd"))
        in_process(path)
        sequential(plain)
        for _ in range(ROUNDS):
            rows.setdefault("sequential", []).append(sequential(plain))
            # The volume flushes every 64 MiB.
            rows.setdefault("sequential, flushed", []).append(sequential(plain, "--fdatasync=64"))
            for how in WAYS:
                rows.setdefault(how, []).append(in_process(path, *how.split()))
            server = Server(path, socket)
            for rw in ["randwrite", "randread"]:
                rows.setdefault(f"nbd {rw}", []).append(over_nbd(server, socket, rw))
            server.stop()
    cpu = next(line.split(": ")[1] for line in open("/proc/cpuinfo").read().split("\n") if "model name" in line)
    load = os.getloadavg()[0]
    print(f"machine: {os.cpu_count()} CPUs, {cpu}, load {load:.1f}, {datetime.date.today()}; {rows['uring direct'][0]['io']}\n")
    report(rows)


main()
