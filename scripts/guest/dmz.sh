# Functions of the guest's scripts around the target dm-zoned on /dev/vda and /dev/nvme0n1. To be sourced; busybox sh.

devices="/dev/vda /dev/nvme0n1"

# Loads the target, has it tell what reclaim does, and keeps what it tells in /tmp/kmsg, whatever the length of the kernel's log.
prepare_dmz() {
  modprobe -a dm-zoned crc32c_generic || return 1
  echo mq-deadline >/sys/block/nvme0n1/queue/scheduler
  # ms. Where QEMU limits it, a request may wait for more than the 30 s after which the driver would reset the device.
  echo 600000 >/sys/block/nvme0n1/queue/io_timeout || return 1
  # Not the line that tells of free zones: an idle target with nothing to do repeats it as fast as it can.
  echo 'file dm-zoned-reclaim.c format "zone %u" +p' >/sys/kernel/debug/dynamic_debug/control
  cat /dev/kmsg >/tmp/kmsg &
}

# A new volume, /dev/mapper/t.
new_dmz() {
  # shellcheck disable=SC2086
  dmzadm --format $devices --force --label=t >/tmp/dmzadm 2>&1 && start_dmz || { cat /tmp/dmzadm; return 1; }
}

start_dmz() {
  # shellcheck disable=SC2086
  dmzadm --start $devices >/tmp/dmzadm 2>&1 || { cat /tmp/dmzadm; return 1; }
}

stop_dmz() {
  # shellcheck disable=SC2086
  dmzadm --stop $devices >/tmp/dmzadm 2>&1 || { cat /tmp/dmzadm; return 1; }
}

# Sectors written to a disk, flushes it got and sectors read from it since boot.
counters() {
  awk -v disk="$1" '$3 == disk { print $10, $19, $6 }' /proc/diskstats
}

# Says something in the log of the kernel, behind what it said before.
say() {
  echo "<7>guest: $1" >/dev/kmsg
  sleep 1
}

# Remembers where everything stands.
mark() {
  say begin
  marked="$(counters vda) $(counters nvme0n1) $(counters dm-0)"
}

# What happened since: MiB and flushes of the regular disk and of the zoned one, MiB at the top; then reclaims started, given
# up, the weight of those started, and of that the weight of chunk $1; how many of them began again, at once, what was just given
# up; MiB read from both disks.
since_mark() {
  now="$(counters vda) $(counters nvme0n1) $(counters dm-0)"
  say end
  awk -v before="$marked" -v now="$now" -v chunk="Chunk ${1:-none}," '
    /guest: begin/ { on = 1; started = weight = of_chunk = aborted = again = 0; last = "" }
    /guest: end/ { on = 0 }
    on && / move (cache|rnd|data|buf) zone / {
      match($0, /zone [0-9]+/)
      zone = substr($0, RSTART, RLENGTH)
      started++
      again += zone == last
      last = ""
      if (match($0, /weight [0-9]+/)) {
        blocks = substr($0, RSTART + 7, RLENGTH - 7)
        weight += blocks
        if (index($0, chunk)) of_chunk += blocks
      }
    }
    on && /interrupted/ { aborted++; last = zone }
    END {
      split(before, b); split(now, n)
      printf "%.1f %d %.1f %d %.1f %d %d %d %d %d %.1f %.1f\n", (n[1] - b[1]) / 2048, n[2] - b[2], (n[4] - b[4]) / 2048, n[5] - b[5],
        (n[7] - b[7]) / 2048, started, aborted, weight, of_chunk, again, (n[3] - b[3]) / 2048, (n[6] - b[6]) / 2048
    }' /tmp/kmsg
}
