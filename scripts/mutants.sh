#!/usr/bin/env bash
# Breaks the FTL in one place at a time and shows that its tests notice (docs/testing.md). Works on a
# copy of the tree with a target directory of its own; the tree itself is not touched.
#
#   scripts/mutants.sh [NAME...]
#
# ONEFOLD_SEEDS is the budget of each random test (default 1500). Ends with 1 if a mutant survives,
# and with 2 if one does not apply any more: then the code has moved on, and so must this list.
set -euo pipefail
cd "$(dirname "$0")/.."

# name | file in crates/ftl/src | perl expression on the whole file | what it breaks
mutants() {
  cat <<'TABLE'
commit-staged|checkpoint.rs|s/fn commit\(.*?\n.*?\n\s*self\.program_all_staged\(background\(now\)\)\?;/fn commit(&mut self, now: Nanos, dump: Dump) -> Result<(), FtlError> {/|staged slots in a dumped map are programmed before the commit
commit-sync|checkpoint.rs|s/self\.sync\(\)\?;\n(\s*let copy)/$1/|everything a label names is durable before it
label-in-place|checkpoint.rs|s/labels\[index64\(dump\.label\.generation % 2\)\]/labels[0]/|labels take turns
cut-staged|checkpoint.rs|s/slots: frontier\.programmed/slots: frontier.next + 1/|the frontier of a cut is what was programmed
frontier-forgotten|candidates.rs|s/frontier\.map\(\|cut\| cut\.slots\)/frontier.filter(|_| false).map(|cut| cut.slots)/|slots past the frontiers of the cut are candidates
newer-copy-wins|candidates.rs|s/if is_copy \{/if is_copy \&\& superblock.raw() == u32::MAX {/|the older of two copies wins
half-erased-trusted|candidates.rs|s/Ok\(same && \(!carries.*?\)\)\n/let _ = carries; Ok(same)\n/; s/fn leave_drained\(&mut self\) \{/fn leave_drained(&mut self) { if self.best.len() < usize::MAX { return; }/|a half erased superblock does not win over the copies
no-verification|candidates.rs|s/let verify = !whole && carries;/let verify = !whole \&\& carries \&\& epoch == 0;/|slots after the mark are verified
verified-once|candidates.rs|s/\.unverified = true;/.unverified = false;/|a superblock with torn data is verified for ever
hole-forgotten|candidates.rs|s/\.unverified \|= hole;/.unverified |= hole \&\& epoch == 0;/|tail pages over torn slots are not believed
trim-seq|recovery.rs|s/if seq\.raw\(\) > self\.best\[lpn\] \{/if seq.raw() > 0 {/|a trim record loses against later writes
trim-covered|recovery.rs|s/record\.seq > covered/record.seq > Seq::default() || record.seq > covered/|a checkpoint covers the trim records before it
epoch-again|recovery.rs|s/newest\.alloc\.max\(self\.mark\.epoch\)\.max\(limit\.epoch\)/newest.alloc/|no epoch is given out twice
mark-too-new|read.rs|s/epoch: self\.oldest_unverified\(\)/epoch: self.alloc/|the mark stays behind open superblocks
trim-unlogged|trim.rs|s/self\.log_trim\(begin, last \+ 1 - begin\)\?;//|a trim is in NVRAM before it is in the map
replaced-at-once|staging.rs|s/let replaces = unit\.moves_from\.or_else\(\|\| self\.map\.stored\(unit\.lpn\)\);/let replaces = unit.moves_from.or_else(|| self.map.stored(unit.lpn)); if let Some(old) = replaces { self.invalidate(old); } let replaces = None;/|content is valid until its successor is programmed
staged-shift|staging.rs|s/open\.staged_data\.resize\(open\.staged\.len\(\) \* unit_bytes, 0\);//|a lost unit does not shift its neighbours
frontier-twice|write.rs|s/if self\.frontiers\[index\(frontier\)\]\.superblock\.is_some\(\) \{\n(\s*\/\/ Collection shares)/if false {\n$1/|a frontier that collection opened is not opened again
reserve-too-small|layout.rs|s/if mixes \{ 2 \} else \{ 1 \}/1/|the reserve of a shared frontier
reserve-unsynced|gc.rs|s/&& state\.unsynced > 0/\&\& state.unsynced == u32::MAX/|erases that are not durable are no reserve
wear-unnoted|gc.rs|s/self\.note_wear\(superblock\)\?;\n(\s*Ok\(usable\))/$1/|retired superblocks are in NVRAM
TABLE
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r Cargo.toml Cargo.lock crates xtask "$work"
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$work/target}
export ONEFOLD_SEEDS=${ONEFOLD_SEEDS:-1500}
export RUST_BACKTRACE=0

tests() {
  (cd "$work" && timeout 300 cargo test --offline -q -p onefold-ftl --test mapping --test power_cut)
}

if ! tests >"$work/log" 2>&1; then
  tail -20 "$work/log" >&2
  echo "mutants: the tests fail without any mutant" >&2
  exit 2
fi

status=0
while IFS='|' read -r name file expression what; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  source=$work/crates/ftl/src/$file
  cp "$source" "$work/kept"
  # The expressions contain `|`: it was split above, so the fields are joined again here.
  line=$(mutants | grep "^$name|")
  what=${line##*|}
  expression=${line#"$name|$file|"}
  expression=${expression%"|$what"}
  perl -0pi -e "$expression" "$source"
  if cmp -s "$source" "$work/kept"; then
    result='does not apply'
    status=2
  elif tests >"$work/log" 2>&1; then
    result=SURVIVED
    [ $status = 2 ] || status=1
  elif grep -q '^error: could not compile\|^error\[' "$work/log"; then
    result='does not compile'
    status=2
  else
    failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p; s/^    \([a-z_]*\)$/\1/p' "$work/log" | sort -u | paste -sd, -)
    result="killed by ${failed:-a time limit}"
  fi
  printf '%-20s %-60s %s\n' "$name" "$what" "$result"
  cp "$work/kept" "$source"
done < <(mutants)
exit $status
