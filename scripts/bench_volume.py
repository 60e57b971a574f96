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


def sequential(path):
    ring = ["--ioengine=io_uring", "--direct=1", "--iodepth=12"]
    return fio(f"--filename={path}", "--size=1g", "--rw=write", "--bs=1m", *ring)


def in_process(path, *how):
    program = [PROGRAMS / "examples" / "volume", path, str(SECONDS), "2", *how]
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


def report(rows):
    sequential_mib = median(rows["sequential"], "mib_s")
    print("| 4 KiB random writes | user MiB/s | sent MiB/s | of fio's sequential | WAF_host | CPUs |")
    print("|---|---|---|---|---|---|")
    print(f"| fio, sequential 1 MiB | {sequential_mib:.0f} | | 1 | | {median(rows['sequential'], 'cpu'):.2f} |")
    for how in ["uring", "threads", "threads buffered"]:
        user, sent, waf, cpu = (
            median(rows[how], key) for key in ("user_mib_s", "sent_mib_s", "waf", "write_cpu")
        )
        share = statistics.median(
            row["sent_mib_s"] / other["mib_s"]
            for row, other in zip(rows[how], rows["sequential"], strict=True)
        )
        print(f"| in process, {how} | {user:.0f} | {sent:.0f} | {share:.2f} | {waf:.2f} | {cpu:.2f} |")
    nbd = rows["nbd randwrite"]
    user = median(nbd, "mib_s")
    cpu = f"{median(nbd, 'server_cpu'):.2f} + fio {median(nbd, 'cpu'):.2f}"
    print(f"| NBD, depth 128 | {user:.0f} | | {user / sequential_mib:.2f} | | {cpu} |")
    print()
    print("| 4 KiB random reads, one at a time | with us | without us | with / without, mean | median |")
    print("|---|---|---|---|---|")
    for how in ["uring", "threads buffered"]:
        pairs = rows[how]
        mean = statistics.median(row["read_us"] / row["bypass_us"] for row in pairs)
        half = statistics.median(row["read_median_us"] / row["bypass_median_us"] for row in pairs)
        print(f"| {how} | {median(pairs, 'read_us'):.2f} | {median(pairs, 'bypass_us'):.2f} | {mean:.4f} | {half:.4f} |")
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
            for how in ["uring", "threads", "threads buffered"]:
                rows.setdefault(how, []).append(in_process(path, *how.split()))
            server = Server(path, socket)
            for rw in ["randwrite", "randread"]:
                rows.setdefault(f"nbd {rw}", []).append(over_nbd(server, socket, rw))
            server.stop()
    cpu = next(line.split(": ")[1] for line in open("/proc/cpuinfo").read().split("\n") if "model name" in line)
    load = os.getloadavg()[0]
    print(f"machine: {os.cpu_count()} CPUs, {cpu}, load {load:.1f}, {datetime.date.today()}; {rows['uring'][0]['io']}\n")
    report(rows)


main()
