#!/usr/bin/env python3
"""Speed of the simulator beside MQSim's on the device `s1`: the two in turn, CPU time per request, and the ratio.

    scripts/bench_mqsim.py --mqsim PATH [--before PATH] [--onefold PATH] [--rounds N] [--neighbour]

MQSim is in no package: its repository is CMU-SAFARI/MQSim, and `make` there builds the program that PATH names. --before
is another build of ours, measured in the same turns. --neighbour lets another process copy 64 MiB to and fro, so that the
caches that processors share are never warm.

The device is the same page for page: 8 channels of 2 dies, 256 blocks of 256 pages of 4 KiB, a frontier for each die, all
of the map in memory, no cache, the same times of read, program, erase and transfer. Each load is 32 requests of 4 KiB at a
time, at random over all addresses:

    read      of a full drive
    fresh     400,000 writes on an empty drive, some of them to the same page
    collect   2 M writes on an empty drive: half of them meet garbage collection

What the two say of the load is printed too: mean latency, pages programmed. Reads of MQSim end at 500,000 requests, as it
stops with an error when two requests in flight are for one page and both wait. Its time is the CPU time of a process less
that of one with few requests, ours `cpu_s` of the result; both are without preconditioning.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# By load: requests of ours, requests of MQSim in its long and its short run, share of reads, whether the drive is full.
LOADS = {
    "read": (5_000_000, 500_000, 50_000, 100, 100),
    "fresh": (400_000, 400_000, 1_000, 0, 0),
    "collect": (2_000_000, 2_000_000, 1_000, 0, 0),
}
# `s1` in the words of MQSim; what is not named is its default.
HOST = {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4}
DEVICE = {
    "Seed": 321, "Enabled_Preconditioning": "true", "Memory_Type": "FLASH", "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 65535, "Queue_Fetch_Size": 512, "Caching_Mechanism": "SIMPLE",
    "Data_Cache_Sharing_Mode": "SHARED", "Data_Cache_Capacity": 4 << 20, "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true", "Plane_Allocation_Scheme": "CWDP",
    "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER", "Overprovisioning_Ratio": 0.125,
    "GC_Exec_Threshold": 0.05, "GC_Block_Selection_Policy": "GREEDY", "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false", "GC_Hard_Threshold": 0.005, "Dynamic_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Enabled": "false", "Flash_Channel_Count": 8, "Flash_Channel_Width": 1,
    "Channel_Transfer_Rate": 400, "Chip_No_Per_Channel": 2, "Flash_Comm_Protocol": "NVDDR2",
}
FLASH = {
    "Flash_Technology": "MLC", "CMD_Suspension_Support": "NONE", "Block_Erase_Latency": 2_000_000,
    "Block_PE_Cycles_Limit": 10_000, "Die_No_Per_Chip": 1, "Plane_No_Per_Die": 1, "Block_No_Per_Plane": 256,
    "Page_No_Per_Block": 256, "Page_Capacity": 4096, "Page_Metadat_Capacity": 128,
    **{f"Page_{what}_Latency_{page}": ns for page in ("LSB", "CSB", "MSB")
       for what, ns in (("Read", 40_000), ("Program", 200_000))},
}
NEIGHBOUR = "a = bytearray(64 << 20)\nb = bytearray(64 << 20)\nwhile True:\n    a[:] = b\n    b[:] = a\n"


def xml(name: str, *contents: str | dict) -> str:
    inner = "".join(one if isinstance(one, str) else "".join(f"<{k}>{v}</{k}>\n" for k, v in one.items())
                    for one in contents)
    return f"<{name}>\n{inner}</{name}>\n"


def device() -> str:
    return xml("Execution_Parameter_Set", xml("Host_Parameter_Set", HOST),
               xml("Device_Parameter_Set", DEVICE, xml("Flash_Parameter_Set", FLASH)))


def workload(requests: int, reads: int, full: int) -> str:
    return xml("MQSim_IO_Scenarios", xml("IO_Scenario", xml("IO_Flow_Parameter_Set_Synthetic", {
        "Priority_Class": "HIGH", "Device_Level_Data_Caching_Mode": "TURNED_OFF", "Channel_IDs": "0,1,2,3,4,5,6,7",
        "Chip_IDs": "0,1", "Die_IDs": 0, "Plane_IDs": 0, "Initial_Occupancy_Percentage": full,
        "Working_Set_Percentage": 100, "Synthetic_Generator_Type": "QUEUE_DEPTH", "Read_Percentage": reads,
        "Address_Distribution": "RANDOM_UNIFORM", "Percentage_of_Hot_Region": 0, "Generated_Aligned_Addresses": "true",
        "Address_Alignment_Unit": 8, "Request_Size_Distribution": "FIXED", "Average_Request_Size": 8,
        "Variance_Request_Size": 0, "Seed": 798, "Average_No_of_Reqs_in_Queue": 32, "Intensity": 32768,
        "Stop_Time": 0, "Total_Requests_To_Generate": requests})))


def run(command: list[str]) -> tuple[str, float]:
    """What a program prints, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"bench_mqsim: {' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def mqsim(program: str, folder: Path, requests: int, reads: int, full: int) -> tuple[float, float, int]:
    """CPU seconds, mean latency in microseconds and pages programmed of one run."""
    drive, load = folder / "device.xml", folder / "load.xml"
    drive.write_text(device())
    load.write_text(workload(requests, reads, full))
    _, seconds = run([program, "-i", str(drive), "-w", str(load)])
    result = (folder / "load_scenario_1.xml").read_text()
    served = int(re.search(r"<Request_Count>(\d+)<", result)[1])
    if served != requests:
        sys.exit(f"bench_mqsim: MQSim served {served:,} of {requests:,} requests")
    latency = float(re.search(r"<Device_Response_Time>(\d+)<", result)[1])
    return seconds, latency, int(re.search(r'Issued_Flash_Program_CMD="(\d+)"', result)[1])


def ours(program: str, requests: int, reads: int, full: int) -> tuple[float, float, int]:
    """The same of ours, the CPU seconds without preconditioning."""
    kind = "read" if reads else "write"
    text, _ = run([program, "sim", "run", "--preset", "s1", "--set", f"precondition.fill={full // 100}", "--workload",
                   f"rand{kind},qd=32,requests={requests}", "--format", "json", "--quiet"])
    result = json.loads(text)
    programs = sum(result["flash"]["program_pages"].values())
    return result["cpu_s"], result["latency_ns"][kind]["mean"] / 1e3, programs


def turn(options: argparse.Namespace, folder: Path, load: str) -> tuple[dict[str, float], str]:
    """Nanoseconds of CPU per request by program, each measured once, and what they say of the load."""
    many, long, short, reads, full = LOADS[load]
    long_s, latency, programs = mqsim(options.mqsim, folder, long, reads, full)
    short_s, _, _ = mqsim(options.mqsim, folder, short, reads, full)
    times = {"mqsim": (long_s - short_s) / (long - short) * 1e9}
    said = f"{latency:.0f} us, {programs:,}"
    for name in ("before", "onefold"):
        if (program := getattr(options, name)) is not None:
            seconds, latency, programs = ours(program, many, reads, full)
            times[name] = seconds / many * 1e9
    return times, f"{said} / {latency:.0f} us, {programs:,}"


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench_mqsim", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mqsim", required=True)
    parser.add_argument("--before")
    parser.add_argument("--onefold", default=str(ROOT / "target/release/onefold"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--neighbour", action="store_true")
    options = parser.parse_args()
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR]) if options.neighbour else None
    try:
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before; nanoseconds of CPU per request: median "
              f"(least to most) of {options.rounds}\n")
        print("| load | MQSim | before | ours | MQSim to ours | before to ours | mean latency, programs: MQSim / ours |")
        print("|---|---|---|---|---|---|---|", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for load in LOADS:
                turns = [turn(options, Path(folder), load) for _ in range(options.rounds)]
                times = {name: [one[name] for one, _ in turns] for name in turns[0][0]}
                ratio = {name: [a / b for a, b in zip(times[name], times["onefold"])] for name in times}
                columns = [spread(times[name]) if name in times else "-" for name in ("mqsim", "before", "onefold")]
                columns += [spread(ratio[name]) if name in ratio else "-" for name in ("mqsim", "before")]
                print(f"| {load} | {' | '.join(columns)} | {turns[0][1]} |", flush=True)
    finally:
        if neighbour is not None:
            neighbour.kill()
            neighbour.wait()


if __name__ == "__main__":
    main()
