#!/usr/bin/env bash
# The main job in one go: what does SQLite write to flash, and which power cuts does it survive? With
# root, /dev/fuse, loop devices and sqlite3 it runs on ext4. Without, a small program runs on a disk
# without a file system.
set -uo pipefail
cd "$(dirname "$0")/.."

out=$PWD/out
mkdir -p "$out"
say() { printf '\n== %s\n' "$*"; }
fail() { printf 'demo: FAILED: %s\n' "$*" >&2; exit 1; }
# Prints a command as it can be typed, runs it, and expects an exit code.
run() {
  local expected=$1 code=0
  shift
  printf '$ onefold'; printf ' %q' "$@"; printf '\n'
  "$onefold" --quiet --force --format table -o "$out/table.txt" "$@" || code=$?
  [ "$code" = "$expected" ] || fail "exit code $code instead of $expected"
  cat "$out/table.txt"
}

say "building"
cargo build --release --locked --package onefold || fail "the build"
onefold=${CARGO_TARGET_DIR:-$PWD/target}/release/onefold
begin=$SECONDS

missing=()
[ "$(id -u)" = 0 ] || missing+=("root")
[ -c /dev/fuse ] || missing+=("/dev/fuse")
[ -e /dev/loop-control ] || missing+=("loop devices")
for program in mkfs.ext4 e2fsck mount sqlite3; do
  command -v "$program" > /dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "a small program on a disk without a file system; for SQLite on ext4 this is missing: $(IFS=,; echo "${missing[*]}")"
  run 0 try --fs none --size 1GiB --drives qlc-16k,tlc,970pro --volume --age fill=0.7,overwrite=1.0 \
    --report "$out/report.html" -- scripts/demo/pages.sh 4000
  say "done in $((SECONDS - begin)) s after the build; open out/report.html"
  exit 0
fi

demo=$PWD/scripts/demo
say "what 1,000 transactions of SQLite write to three used drives, alone and behind a volume"
run 0 try --size 1GiB --drives qlc-16k,tlc,970pro --volume --age fill=0.7,overwrite=1.0 --states 0 \
  --report "$out/report.html" -- sh "$demo/load.sh" 1000

say "power cuts: SQLite with a rollback journal and synchronous=FULL announces each commit"
run 7 try --size 1GiB --drives none --states 200 --check "sh $demo/check.sh" \
  -- sh "$demo/commits.sh" FULL 8

say "the same with synchronous=EXTRA, which syncs the folder of the journal as well"
run 0 try --size 1GiB --drives none --states 200 --check "sh $demo/check.sh" \
  -- sh "$demo/commits.sh" EXTRA 8

say "done in $((SECONDS - begin)) s after the build; open out/report.html"
