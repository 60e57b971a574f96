#!/usr/bin/env bash
# Crash states of file systems on volumes (docs/testing-volume.md). A volume is served with a log of all that it sends to what it lies on,
# a file system on it is used, and the log is replayed to what a power cut could have left: what was durable at a flush, a part of
# what came after it in order, or any of that. Each such state has to be clean for `check`; of some the volume is served and the
# file system mounted, everything that was synchronised before has to be there, and its own check has to find nothing.
# Needs root, /dev/fuse and loop devices. Prints how many states there were; ends with 1 at the first one that is wrong.
#
#   scripts/crash-states.sh [short|full|STATES] [SEED] [ext4|xfs|btrfs|sung|han]...
#
# STATES is the number of states that are mounted, per file system; ten times as many are checked. sung and han are ext4 on a volume
# of that mode. CRASH_STATES_FOLDER is where the files go, some 500 MiB (default: that of mktemp).
set -uo pipefail
cd "$(dirname "$0")/.."

budget=${1:-full} seed=${2:-$((RANDOM * 32768 + RANDOM))}
case $budget in
  short) states=3 ;;
  full) states=50 ;;
  '' | *[!0-9]*) sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
  *) states=$budget ;;
esac
shift $(($# > 2 ? 2 : $#))
if [ $# -eq 0 ]; then
  if [ "$budget" = short ]; then set -- ext4 xfs btrfs; else set -- ext4 xfs btrfs sung han; fi
fi

. scripts/served.sh
noun=volume
missing=$(missing_for_served fio fstrim python3)
if [ -n "$missing" ]; then
  echo "skipped: crash states of file systems (missing $missing)"
  case ",${ONEFOLD_REQUIRE:-}," in *,t1,*) exit 1 ;; esac
  exit 0
fi
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold || exit 1
  onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
fi
folder=$(mktemp --directory ${CRASH_STATES_FOLDER:+--tmpdir="$CRASH_STATES_FOLDER"})
fuse=$folder/fuse mount=$folder/mount log=$folder/writes base=$folder/base state=$folder/state
mkdir "$fuse" "$mount"
finish() {
  tear_down
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

copy() { cp --sparse=always "$1" "$2"; }
wrong() {
  echo "FAIL  $name: $*" >&2
  [ ! -s "$folder/output" ] || tail -n 20 "$folder/output" | sed 's/^/      /' >&2
  echo "reproduce: scripts/crash-states.sh $budget $seed $name" >&2
  exit 1
}
expect() {
  local what=$1
  shift
  "$@" > "$folder/output" 2>&1 || wrong "$what"
}
mark() { "$onefold" volume write-log mark "$folder/disk" "$1"; }
# Some writes, random overwrites with fsync, deleted and trimmed files; then files that have to be there from now on.
use() {
  local round=$1
  fio --name=load --directory="$mount" --size=8m --io_size=4m --rw=randwrite --bsrange=4k-64k --ioengine=psync --direct=1 \
    --fsync=16 --randseed=$((seed + round)) --output-format=terse || return 1
  mkdir "$mount/proof-$round" "$mount/trash" || return 1
  for n in 1 2 3 4 5 6; do
    head -c 90000 /dev/urandom > "$mount/trash/$n" && head -c $((n * 20000)) /dev/urandom > "$mount/proof-$round/$n" || return 1
  done
  rm -r "$mount/trash"
  [ $((round % 2)) = 0 ] || fstrim "$mount" || return 1
  (cd "$mount" && sha256sum "proof-$round"/*) > "$folder/proof-$round" || return 1
  sync --file-system "$mount" && mark "proof-$round"
}
# Serves a volume with a log under a file system that is used. What the log is about lies in base as it was before.
record() {
  rm -f "$log" "$base" "$folder/disk" "$folder/disk.sock" "$folder"/proof-*
  image=$folder/disk
  expect "create" "$onefold" volume create "$image" --size 384MiB --backing-size 640MiB --mode "$mode"
  copy "$image" "$base" || wrong "no room"
  serve_options=(--write-log "$log")
  expect "serve" serve
  expect "loop device" attach
  expect "mkfs" make_fs "$fs"
  expect "mount" mount_fs
  expect "sync" sync --file-system "$mount"
  expect "mark" mark made
  for round in 1 2 3 4; do expect "use the file system" use "$round"; done
  expect "umount" umount "$mount"
  expect "detach" detach
  expect "stop" stop
  serve_options=()
  "$onefold" volume write-log list "$log" --format json > "$folder/list" || wrong "the log cannot be read"
}
# One line per state, in the order of the log: how much of it, what of the rest besides (ranges), kind, whether it is mounted, and how many
# proofs have to be there.
choose() {
  python3 - "$folder/list" "$seed" "$states" << 'PYTHON'
import json, random, sys

entries = json.load(open(sys.argv[1]))["entries"]
rng, mounted = random.Random(int(sys.argv[2])), int(sys.argv[3])
flushes = [e["entry"] for e in entries if "flush" in e["flags"]]
marks = {e["mark"]: e["entry"] for e in entries if e["mark"]}
chosen = []
for n in range(11 * mounted):
    mounts = n < mounted
    flush = rng.choice([f for f in flushes if not mounts or f >= marks["made"]])
    after = next((f for f in flushes if f > flush), flush)
    behind = [e["entry"] for e in entries[flush + 1 : after] if not e["mark"]]
    kind, base, more = rng.choice(["flush", "order", "any"]), flush, []
    if kind == "order" and behind:
        base = rng.choice(behind)
    elif kind == "any" and behind:
        more = [e for e in behind if rng.random() < 0.5]
    proofs = sum(1 for text, at in marks.items() if text.startswith("proof-") and at <= flush)
    chosen.append((base, more, kind, mounts, proofs))
for base, more, kind, mounts, proofs in sorted(chosen):
    print(base, ",".join(map(str, more)) or "-", kind, "mount" if mounts else "check", proofs)
print(f"{len(entries)} entries, {len(flushes)} flushes, {len(set(map(str, chosen)))} states", file=sys.stderr)
PYTHON
}
replay_log() { "$onefold" volume write-log replay "$log" "$@" --force; }
# Checks the state that lies in $state.
look() {
  local mounts=$1 proofs=$2 n
  expect "check" "$onefold" volume check "$state" --data
  [ "$mounts" = mount ] || return 0
  image=$state
  expect "serve" serve
  expect "loop device" attach
  expect "mount" mount_fs
  for n in $(seq "$proofs"); do
    (cd "$mount" && sha256sum --check --quiet "$folder/proof-$n") > "$folder/output" 2>&1 || wrong "files of round $n are not as written"
  done
  expect "umount" umount "$mount"
  expect "fsck" check_fs "$fs"
  # Else the kernel would take the next state for an old part of this one.
  [ "$fs" != btrfs ] || btrfs device scan --forget "$loop" > /dev/null
  expect "detach" detach
  expect "stop" stop
  expect "check after all" "$onefold" volume check "$state"
}
all_states=0 all_mounted=0
run() {
  name=$1 mode=log fs=$1
  case $name in sung | han) mode=$name fs=ext4 ;; esac
  record
  choose > "$folder/states" 2> "$folder/counts" || wrong "no states"
  local at=-1 base_entry more kind mounts proofs entry
  local -A kinds=()
  copy "$base" "$folder/replayed"
  while read -r base_entry more kind mounts proofs; do
    : > "$folder/output"
    name="$1, $kind: entry $base_entry and $more"
    if [ "$base_entry" -gt "$at" ]; then
      expect "replay" replay_log "$folder/replayed" --from-entry $((at + 1)) --to-entry "$base_entry"
      at=$base_entry
    fi
    copy "$folder/replayed" "$state"
    if [ "$more" != - ]; then
      for entry in ${more//,/ }; do expect "replay" replay_log "$state" --from-entry "$entry" --to-entry "$entry"; done
    fi
    look "$mounts" "$proofs"
    kinds[$kind]=$((${kinds[$kind]:-0} + 1))
    all_states=$((all_states + 1))
    [ "$mounts" = check ] || all_mounted=$((all_mounted + 1))
  done < "$folder/states"
  echo "PASS  $1: $(< "$folder/counts"): ${kinds[flush]:-0} at a flush, ${kinds[order]:-0} behind one in order, ${kinds[any]:-0} with any of what follows"
}
for one in "$@"; do
  case $one in ext4 | xfs | btrfs | sung | han) ;; *) echo "unknown file system or mode $one" >&2; exit 2 ;; esac
  case $one in sung | han) program=ext4 ;; *) program=$one ;; esac
  if ! command -v "mkfs.$program" > /dev/null; then
    echo "SKIP  $one: mkfs.$program is missing"
  elif ! grep -qw "$program" /proc/filesystems && ! modprobe -q "$program" 2> /dev/null; then
    echo "SKIP  $one: not in this kernel"
  else
    run "$one"
  fi
done
echo "crash-states: seed $seed: $all_states states checked, $all_mounted of them mounted, nothing wrong"
