#!/usr/bin/env bash
# Fuzzes on stable Rust: builds the targets of fuzz/ with coverage and runs each for some seconds, one on each
# processor at a time.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]      30 s each, every target, unless said otherwise
#
# Seeds are in fuzz/corpus/TARGET; what a run finds goes to fuzz/target/corpus/TARGET. On a crash it
# prints the command that repeats it and exits with 1.
set -uo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
  [0-9]*) seconds=$1; shift ;;
  *) seconds=30 ;;
esac
case "$seconds" in
  *[!0-9]*) echo "fuzz: seconds are $seconds, expected a whole number" >&2; exit 2 ;;
esac

mapfile -t known < <(cd fuzz/targets && for file in *.rs; do echo "${file%.rs}"; done)
targets=("${@:-${known[@]}}")
[ $# -gt 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  if [ ! -f "fuzz/targets/$target.rs" ]; then
    echo "fuzz: no target $target, expected one of: ${known[*]}" >&2
    exit 2
  fi
done

if ! command -v c++ >/dev/null; then
  echo "skipped: fuzzing (libFuzzer needs a C++ compiler; apt-get install g++)"
  exit 0
fi

profile=release
[ "$seconds" -gt 60 ] || profile=smoke
# --target keeps build scripts and procedural macros free of coverage.
triple=$(rustc --version --verbose | sed -n 's/^host: //p')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing"
# The build gives way to what else runs: `make test` has it in the background.
nice -n 10 cargo build --profile $profile --manifest-path fuzz/Cargo.toml --target-dir fuzz/target --target "$triple" \
  "${targets[@]/#/--bin=}" || exit 1

# Fuzzes one target and says what came of it.
fuzz() {
  local target=$1
  local binary=fuzz/target/$triple/$profile/$target found=fuzz/target/corpus/$target
  local artifacts=fuzz/target/artifacts/$target/ log=fuzz/target/$target.log seeds=()
  mkdir -p "$found" "$artifacts"
  [ -d "fuzz/corpus/$target" ] && seeds=("fuzz/corpus/$target")
  if "$binary" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$artifacts" "$found" "${seeds[@]}" >"$log" 2>&1 </dev/null; then
    local runs coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
    printf 'fuzz %-16s ok: %s inputs in %s s, %s\n' "$target" "${runs:-?}" "$seconds" "${coverage:-cov: ?}"
  else
    local input
    input=$(grep -o 'Test unit written to .*' "$log" | tail -n 1 | sed 's/^Test unit written to //')
    printf '%s\nfuzz %-16s FAILED\nreproduce: %s %s\n' "$(tail -n 40 "$log")" "$target" \
      "$binary" "${input:-(no input was written; see $log)}"
    return 1
  fi
}

# A target is one thread: as many at a time as there are processors.
failed=0
running=0
for target in "${targets[@]}"; do
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit $failed
