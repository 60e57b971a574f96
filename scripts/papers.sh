#!/usr/bin/env bash
# Figures and checks of the five papers (docs/papers), ours beside theirs.
#
#   scripts/papers.sh [short]   from the tables in docs/papers/results: reports in target/papers, every check, some points of each
#                               study run again and compared with its table, and all figures drawn again and compared. Minutes.
#   scripts/papers.sh full      runs what is missing in target/papers, then writes tables and figures. Hours; it can be
#                               stopped and started again. STUDIES="sung2022-fio .." runs only these.
#
# ONEFOLD names another binary.
set -euo pipefail
cd "$(dirname "$0")/.."

budget=${1:-short}
case "$budget" in
  short | full) ;;
  *) sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
all="sung2022-fio sung2022-sata volume-qlc han2021-sata han2021-nvme han2021-dram han2021-fig9 choi2022 choi2022-rows choi2022-small
  wu2022-fig5 wu2022-fig5-full wu2022-fig6 wu2022-fig6-full wu2022-fig7 wu2022-fig8 wu2022-fig9 wu2022-fig10 wu2022-sections
  wu2022-small remap-primitive jeong2021 jeong2021-areas jeong2021-latency jeong2021-small jeong2021-reads append-streams"
studies=${STUDIES:-$all}
tables=docs/papers/results
figures=docs/papers/figures
made=target/papers
onefold=${ONEFOLD:-}
if [ -z "$onefold" ]; then
  cargo build --release --locked --package onefold
  onefold=${CARGO_TARGET_DIR:-target}/release/onefold
fi
mkdir -p "$made" "$tables" "$figures"

# Which points of a study are run again: cheap ones. Those of the studies that have a table now take 20 s of CPU
# time; a point at full size (wu2022-fig7, wu2022-sections) takes 40 s and 1 GiB.
sample() {
  case "$1" in
    sung2022-fio) echo --only seq --only rand --only ffsb-read --only ffsb-write --only ext4-fio-rand --points 12 ;;
    sung2022-sata) echo --only rand --only ffsb-read --only ffsb-write --only ext4-fio-rand --points 8 ;;
    volume-qlc) echo --only ext4-fio-rand --only f2fs-ffsb-write --points 4 ;;
    han2021-sata) echo --only ext4-fio-rand --only xfs-ffsb-mixed --only btrfs-postmark --only f2fs-fio-rand --points 8 ;;
    han2021-fig9) echo --only free --points 2 ;;
    han2021-nvme) echo --only rand --only postmark --only xfs-ffsb-mixed --points 8 ;;
    choi2022) echo --only o-uniform-1536 --only o-zipf-2048 --policy off --policy one --points 4 ;;
    choi2022-rows) echo --only row-1 --only row-3 --points 3 ;;
    choi2022-small) echo --points 6 ;;
    wu2022-fig5) echo --only randw --policy LH --policy Opt --points 1 ;;
    wu2022-fig6) echo --policy LH --points 1 ;;
    wu2022-fig5-full | wu2022-fig6-full) echo --policy NoRemap --points 1 ;;
    wu2022-fig7 | wu2022-sections) echo --points 1 ;;
    wu2022-fig8 | wu2022-fig9 | wu2022-fig10 | wu2022-small | remap-primitive | han2021-dram) echo --points 2 ;;
    append-streams) echo --points 6 ;;
    jeong2021-reads) echo --only W1t --only W4t --policy AOI --policy VBBMS --points 2 ;;
    jeong2021*) echo --only W3 --policy LRU --policy AOI --points 1 ;;
  esac
}

# The part of a study that is run and kept, as options; all of it if there are none. All of jeong2021 takes hours
# more: the paper's own policies, LRU and both sizes of chunks are kept.
part() {
  options=()
  case "$1" in
    jeong2021)
      for policy in LRU 2L PT-LRU VBBMS AOI "AOI 4 KiB"; do options+=(--policy "$policy"); done ;;
  esac
}

full() {
  local study=$1 options
  part "$study"
  "$onefold" study run "studies/$study.toml" "${options[@]}" --quiet --results "$made/$study"
  "$onefold" study export "studies/$study.toml" "${options[@]}" --results "$made/$study" --force -o "$tables/$study.csv"
  "$onefold" study report "studies/$study.toml" "${options[@]}" --results "$tables/$study.csv" --figures "$figures"
}

# Everything from the table; a failure is counted, and the rest goes on.
failed=0
short() {
  local study=$1 table=$tables/$1.csv options
  local file=studies/$study.toml
  part "$study"
  if [ ! -e "$table" ]; then
    echo "$study: no table yet; \`STUDIES=$study make papers BUDGET=full\` makes one"
    return
  fi
  echo "== $study"
  "$onefold" study report "$file" "${options[@]}" --results "$table" --force -o "$made/$study.html" \
    --figures "$made/figures" || failed=1
  "$onefold" study report "$file" "${options[@]}" --results "$table" --quiet --format table --force \
    -o "$made/$study.txt" || failed=1
  if grep -q '^\[\[check\]\]' "$file"; then
    "$onefold" study check "$file" "${options[@]}" --results "$table" --force -o "$made/$study-checks.txt" || failed=1
  fi
  # The words of a sample are words.
  # shellcheck disable=SC2046
  "$onefold" study verify "$file" --results "$table" $(sample "$study") || failed=1
}

if [ "$budget" = full ]; then
  for study in $studies; do full "$study"; done
  exit
fi
rm -rf "$made/figures"
mkdir -p "$made/figures"
for study in $studies; do short "$study"; done
if [ -z "${STUDIES:-}" ] && ! diff --recursive --brief "$made/figures" "$figures"; then
  echo "papers: figures in $figures are not those of the tables; copy those in $made/figures if the change is meant" >&2
  failed=1
fi
exit "$failed"
