#!/usr/bin/env bash
# Breaks the core, the volume's driver or NBD in one place at a time and shows that the tests notice
# (docs/testing.md). Works on a copy of the tree with a target directory of its own; the tree itself is
# not touched.
#
#   scripts/mutants.sh [NAME|CRATE...]      all, unless mutants or crates (ftl, ssd, buffer, study,
#   volume, modes, zoned, journal, device, serve, sim, sqlite) are named
#   scripts/mutants.sh --check              only says which do not apply any more; seconds, nothing is built
#
# ONEFOLD_SEEDS is the budget of each random test of the FTL (default 1500), MUTANTS_TARGET a target
# directory to use. Ends with 1 if a mutant survives, and with 2 if one does not apply any more: then the
# code has moved on, and so must this list.
set -euo pipefail
cd "$(dirname "$0")/.."

# crate | name | file in crates/CRATE/src | perl expression on the whole file | the rule it breaks
mutants() {
  cat <<'TABLE'
ftl|copies-forgotten|gc.rs|s/if self\.superblocks\[victim\.index\(\)\]\.valid > 0 (\{\n            \/\/ Referrers)/if self.superblocks[victim.index()].valid > 0 \&\& self.remap.is_some() $1/|copies that were staged on a superblock that failed are made again
ftl|commit-staged|checkpoint.rs|s/fn commit\(.*?\n.*?\n\s*self\.program_all_staged\(background\(now\)\)\?;/fn commit(&mut self, now: Nanos, dump: Dump) -> Result<(), FtlError> {/|staged slots in a dumped map are programmed before the commit
ftl|commit-sync|checkpoint.rs|s/self\.sync\(\)\?;\n(\s*let copy)/$1/|everything a label names is durable before it
ftl|label-in-place|checkpoint.rs|s/labels\[index64\(dump\.label\.generation % 2\)\]/labels[0]/|labels take turns
ftl|cut-staged|checkpoint.rs|s/slots: frontier\.programmed/slots: frontier.next + 1/|the frontier of a cut is what was programmed
ftl|frontier-forgotten|candidates.rs|s/frontier\.map\(\|cut\| cut\.slots\)/frontier.filter(|_| false).map(|cut| cut.slots)/|slots past the frontiers of the cut are candidates
ftl|newer-copy-wins|candidates.rs|s/if is_copy \{/if is_copy \&\& superblock.raw() == u32::MAX {/|the older of two copies wins
ftl|half-erased-trusted|candidates.rs|s/if !self\.is_whole\(superblock, slot\)\? \{\n\s*return Ok\(false\);\n\s*\}//; s/fn leave_drained\(&mut self\) \{/fn leave_drained(&mut self) { if self.best.len() < usize::MAX { return; }/|a half erased superblock does not win over the copies
ftl|no-verification|candidates.rs|s/let verify = !whole && carries;/let verify = !whole \&\& carries \&\& epoch == 0;/|slots after the mark are verified
ftl|verified-once|candidates.rs|s/\.unverified = true;/.unverified = false;/|a superblock with torn data is verified for ever
ftl|hole-forgotten|candidates.rs|s/\.unverified \|= hole;/.unverified |= hole \&\& epoch == 0;/|tail pages over torn slots are not believed
ftl|trim-seq|recovery.rs|s/if seq\.raw\(\) > self\.best\[lpn\] \{/if seq.raw() > 0 {/|a trim record loses against later writes
ftl|trim-covered|recovery.rs|s/record\.seq > covered/record.seq > Seq::default() || record.seq > covered/|a checkpoint covers the trim records before it
ftl|epoch-again|recovery.rs|s/newest\.alloc\.max\(self\.mark\.epoch\)\.max\(limit\.epoch\)/newest.alloc/|no epoch is given out twice
ftl|mark-too-new|read.rs|s/epoch: self\.oldest_unverified\(\)/epoch: self.alloc/|the mark stays behind open superblocks
ftl|trim-unlogged|trim.rs|s/self\.log_trim\(begin, count\)\?;//|a trim is in NVRAM before it is in the map
ftl|replaced-at-once|staging.rs|s/let replaces = unit\.moves_from\.or\(before\);/let replaces = unit.moves_from.or(before); if let Some(old) = replaces { self.invalidate(old); } let replaces = None;/|content is valid until its successor is programmed
ftl|staged-shift|staging.rs|s/open\.staged_data\.resize\(open\.staged\.len\(\) \* unit_bytes, 0\);//|a lost unit does not shift its neighbours
ftl|frontier-twice|write.rs|s/if self\.frontiers\[index\(frontier\)\]\.superblock\.is_some\(\) \{\n(\s*\/\/ Collection shares)/if false {\n$1/|a frontier that collection opened is not opened again
ftl|greedy-stale|victim/greedy.rs|s/else if before == \*least/else if before == NOBODY \&\& before == *least/|a row of victims is looked through when its least goes
ftl|reserve-too-small|layout.rs|s/if mixes \{ 2 \} else \{ 1 \}/1/|the reserve of a shared frontier
ftl|closed-for-ever|gc.rs|s/pool_state\.closed -= 1;//|a pool counts its superblocks that are full
ftl|reserve-unsynced|gc.rs|s/&& state\.unsynced > 0/\&\& state.unsynced == u32::MAX/|erases that are not durable are no reserve
ftl|wear-unnoted|gc.rs|s/self\.note_wear\(superblock\)\?;\n(\s*Ok\(usable\))/$1/|retired superblocks are in NVRAM
ftl|aside-given-up|relocate.rs|s/Err\(MediaError::Unreadable\) => \{\n(\s*self\.relocate_lost)/Err(MediaError::Unreadable | MediaError::Backing { .. }) => {\n$1/|a slot that cannot be read now is kept
ftl|aside-for-ever|aside.rs|s/for \(place, _\) in aside \{/for (place, _) in aside.into_iter().take(0) {/|what was set aside is looked at again
ftl|aside-full|gc.rs|s/return self\.reconsider\(pool\)\.map_or\(Ok\(false\), \|why\| Err\(why\.into\(\)\)\);/return Ok(false);/|victims that cannot be read are no full device
ftl|remap-unlogged|remap/execute.rs|s/let done = self\.write_log\(at\.ready\)\?;/let done = at.ready;/|a remap is in NVRAM when it completes
ftl|remap-epoch|remap/recover.rs|s/is_some_and\(\|head\| head\.epoch == epoch\)/is_some()/|entries of an erased superblock do not count
ftl|remap-tombstone|remap/execute.rs|s/self\.log_trim\(first, count\)\?;//|a moved source stays unmapped
ftl|remap-references|remap/execute.rs|s/remap\.refs\.add_run\(first, u32::from\(entry\.len\)\);//|a shared slot is referenced by all that map to it
ftl|remap-destage|remap/store.rs|s/self\.write_pages\(read, superblock, live, Cause::Rmm\)\?;/let _ = (read, live);/|segments are given back after their entries are on flash
ftl|remap-erase-first|gc.rs|s/let durable = self\.write_log\(now\)\?;/let durable = now;/|entries of moved slots are in NVRAM before the erase
ftl|remap-free-upkeep|remap/store.rs|s/self\.port\.read\(now, bytes\)/now.max(Nanos::new(bytes.min(0)))/|compaction takes its time at the port of NVRAM
ftl|remap-new-number|remap/collect.rs|s/RemapEntry::single\(Seq::new\(seq\)/RemapEntry::single(Seq::new(seq + 1000)/|collection keeps the numbers of mappings
ftl|remap-absorb-number|remap/collect.rs|s/Some\(\(newest\.lpn, Some\(newest\.seq\)\)\)/Some((newest.lpn, None))/|an absorbed unit keeps the number of its mapping
ftl|remap-oldest-entry|remap/live.rs|s/entries\.iter\(\)\.enumerate\(\)\.rev\(\)/entries.iter().enumerate()/; s/kept\.reverse\(\);//|of two entries of a unit the newest counts
ftl|remap-aborted|candidates.rs|s/if self\.aborted\.contains\(&candidate\.seq\)/if self.aborted.contains(&0)/|slots and entries of an atomic remap that was cut off do not count
ftl|remap-not-running|remap/execute.rs|s/self\.begin_command\(slot, options\.id\.unwrap_or\(0\)\)\?;/let _ = slot;/|an atomic remap is noted as running before its records
ftl|remap-done-early|remap/numbered.rs|s/if M::STORES && atomic \{\n\s*self\.sync\(\)\?;\n\s*\}//|its records are durable before it is noted as done
ftl|remap-reuse|remap/append.rs|s/let list = if M::STORES \{ waiting \} else \{ free \};/let _ = waiting; let list = free;/|segments are reused after a synchronisation
ftl|remap-ended|trim.rs|s/(let unit = staged\.clone\(\);)\n(.*?staged\.lpn = 0;)/$2 $1/s|a mapping that ended is noted for its unit
ftl|remap-unsealed|remap/recover.rs|s/sealed: true/sealed: false/|segments from before a power cut take no more entries
ftl|remap-one-life|remap/append.rs|s/let life = self\.alloc;/let life = 1;/|an entry of an earlier use of its segment does not pass
ftl|remap-moved-slots|remap/recover.rs|s/entry\.seq > covered \|\| first\.is_some_and\(\|first\| slot >= first\)/entry.seq > covered/|entries about slots programmed after the cut are candidates
ftl|remap-torn-slot|remap/recover.rs|s/self\.ftl\.superblocks\[superblock\.index\(\)\]\.unverified = true;//|a torn slot that an entry names is never believed
ftl|remap-move-unsynced|remap/execute.rs|s/self\.sync\(\)\?;\n(\s*\}\n\s*if has_copies\(pieces\) && !options\.atomic)/$1/|a source is not gone while its target is not there
ftl|remap-dumped|checkpoint.rs|s/self\.write_log\(now\)\?;\n(\s*if M::STORES)/$1/|entries a dumped map leads to are in NVRAM before the commit
ftl|remap-erase-unnoted|gc.rs|s/self\.note_erasing\(superblock\)\?;//|a half erased log superblock is told from a rotten one
ftl|remap-flush-early|read.rs|s/if !self\.moving\.is_empty\(\) \{\n\s*self\.unmap_moved\(at\)\?;\n\s*\}//; s/(pub fn flush.*?\{)/$1 if !self.moving.is_empty() { self.unmap_moved(at)?; }/s|sources of a move on flush are there until it completes
ftl|remap-moves-early|remap/command.rs|s/(let done = self\.execute\(at, ranges, &pieces, options, slot\)\?;)/$1 self.note_moving(\&pieces, options);/|a move on flush that failed in a part moves nothing
ftl|remap-erase-unsynced|gc.rs|s/self\.sync\(\)\?;\n(\s*self\.write_wear\(superblock, ERASING_BIT\))/$1/|log pages count until what replaces them is durable
ftl|remap-old-places|remap/recover.rs|s/in group\.segments\.into_iter\(\)\.rev\(\)/in group.segments/; s/in segments\.into_iter\(\)\.rev\(\)/in segments/|segments that were compacted do not come back
ftl|remap-no-spare|remap/groups.rs|s/!\(self\.free\.is_empty\(\) && self\.waiting\.is_empty\(\)\)/self.total > 0/|without a free segment nothing is compacted
ftl|remap-stride-found|remap/recover.rs|s/in entry\.units\(\) \{\n(\s*if entry\.seq > covered)/in (entry.target.raw()..).zip(entry.slot..entry.slot + u32::from(entry.len)) {\n$1/|recovery reads the strides of entries
ftl|remap-stride-lookup|remap/found.rs|s/entry\.slot_of\(lpn\) == Some\(slot\)/entry.slot + lpn.wrapping_sub(entry.target.raw()) == slot/|a copy is looked for where the strided entry has it
ftl|remap-stride-adopted|remap/recover.rs|s/in entry\.units\(\) \{\n(\s*let mapped)/in (entry.target.raw()..).zip(entry.slot..entry.slot + u32::from(entry.len)) {\n$1/|units of strided runs are known as remapped after a recovery
ftl|remap-stride-moved|remap/collect.rs|s/in entry\.units\(\)/in (entry.target.raw()..).zip(entry.slot..entry.slot + u32::from(entry.len))/|collection finds the units of strided runs
ftl|remap-stride-live|remap/live.rs|s/\(\(lpn, slot\), n\) in entry\.units\(\)\.zip\(0\.\.\)/((lpn, slot), n) in (entry.target.raw()..).zip(entry.slot..entry.slot + u32::from(entry.len)).zip(0..)/|units of strided runs are looked for where they are
ftl|remap-stride-ended|remap/live.rs|s/\(\(lpn, _\), n\) in entry\.units\(\)\.zip\(0\.\.\)/((lpn, _), n) in (entry.target.raw()..).zip(entry.slot..entry.slot + u32::from(entry.len)).zip(0..)/|ended mappings of strided runs are told by their units
ftl|remap-stride-guessed|remap/piece.rs|s/if step != self\.len \* u32::from\(self\.stride\)/if false/|a run has one stride
ftl|map-run-for-good|entries.rs|s/self\.unroll\(at \/ CHUNK\)\[at % CHUNK\] = number;/self.unroll(at \/ CHUNK);/|an entry that breaks a run is kept
ftl|map-run-unchecked|entries.rs|s/\(expected == \*entries\)\.then_some/(expected[0] == first).then_some/|a run says what all entries of its chunk are
ftl|map-run-alike|entries.rs|s/entries\.iter\(\)\.all\(\|entry\| \*entry == first\)/entries[1] == first/|all entries of a chunk are alike, or it is no such run
ftl|fill-mapped|fill.rs|s/self\.map\.l2p\.are_all\(fresh, UNMAPPED\)/!fresh.is_empty()/|units that were written before are not written by runs
ftl|fill-to-the-end|fill.rs|s/self\.layout\.data_end - open\.next - 1/self.layout.data_end - open.next/|the last slot of a superblock closes it
ftl|fill-checkpoint|fill.rs|s/self\.checkpoints\.written \+ 1/self.checkpoints.written/|the write that begins a checkpoint is no part of a run
ftl|fill-half-page|fill.rs|s/rounds -= rounds % self\.nand\.geometry\(\)\.slots_per_program\(\);//|runs are of whole flash pages
ftl|remap-run-ends|remap/plan.rs|s/&& slot > 0//|a run ends with its superblock
ftl|remap-target-stays|remap/plan.rs|s/stays\.extend_from_slice\(&targets\);/let _ = \&targets;/|a moved source that is a target as well stays
ftl|recovery-one-die|recovery_cost.rs|s/pages\.div_ceil\(dies\)/pages.div_ceil(dies.min(1))/|all dies read in a recovery
ftl|recovery-tails|recovery_cost.rs|s/cost\.tail_pages \+= units\.div_ceil\(per_program\);/let _ = units;/|tails of complete superblocks are read in a recovery
ftl|recovery-all|recovery_cost.rs|s/block\.epoch >= label\.alloc\n/block.epoch >= label.alloc.min(0)\n/|what the checkpoint has is not read in a recovery
ssd|zns-victim|zns/state.rs|s/self\.implicit\.first_key_value\(\)/self.implicit.last_key_value()/|the implicitly open zone that was opened first is closed
ssd|zns-active-first|zns/state.rs|s/&& is_new\n\s*&& self\.active >= max/\&\& is_new \&\& self.active > max/|no more zones are active than may be
ssd|zns-pointer|zns/state.rs|s/Some\(at\) if at != written/Some(at) if at > written/|a write begins at the write pointer
ssd|zns-boundary|zns/state.rs|s/if blocks > limit - begin/if blocks > limit + 4 - begin/|a write ends at the capacity
ssd|zns-record-set|zns/allocate.rs|s/(self\.data\[zone\.index\(\)\]\.set = Some\(set\);)\n\s*self\.record_zone\(zone\)\?;/$1/|NVRAM names the set of a zone before it is programmed
ssd|zns-reset-record|zns/manage.rs|s/self\.record_zone\(zone\)\?;\n(\s*let Some\(set\) = set)/$1/|a reset is in NVRAM before the erase
ssd|zns-given-back|zns/allocate.rs|s/if self\.given_back\.contains\(&set\) \{\n\s*self\.sync\(\)\?;\n\s*\}//|a set is not given out while its reset can be lost
ssd|zns-left-staged|zns/flush.rs|s/if self\.left_staged\.contains\(&zone\) \{\n\s*self\.sync\(\)\?;\n\s*\}//|staged blocks stay until what replaces them is durable
ssd|zns-flushing|zns/unsynced.rs|s/(self\.before\.clear\(\);)/$1 self.since.clear();/|a flush does not cover what comes while it is under way
ssd|zns-move-sync|zns/allocate.rs|s/self\.sync\(\)\?;\n(\s*self\.data\[zone\.index\(\)\]\.set = Some\(to\);)/$1/|copies are durable before the record that names them
ssd|zns-cut-page|zns/recover.rs|s/extent\.is_cut && state == ZoneState::Closed/extent.is_cut \&\& state == ZoneState::Empty/|a zone leaves a flash page that was cut
ssd|zns-unverified|zns/recover.rs|s/first \+ page_blocks <= whole;/first + page_blocks <= whole + 100;/|blocks after the last FLUSH are verified
ssd|zns-life|zns/recover.rs|s/&& record\.epoch_low == self\.data\[zone\.index\(\)\]\.resets/\&\& record.epoch_low <= u32::MAX/|staged blocks of an earlier life of a zone do not count
ssd|zns-conv-append|zns/state.rs|s/None if self\.is_conventional\(id\)/None if id.raw() == u32::MAX/|conventional zones take no appends
ssd|zns-conv-action|zns/state.rs|s/if self\.is_conventional\(id\) \{\n(\s*\/\/ As ZBC)/if id.raw() == u32::MAX {\n$1/|conventional zones are not opened, closed, finished and reset
ssd|zns-conv-all|zns/manage.rs|s/self\.table\.sequential\(\)\.filter\(changes\)/self.table.ids().filter(changes)/|an action on all zones leaves conventional ones alone
ssd|zns-conv-limit|zns/state.rs|s/if self\.is_conventional\(id\) \{ self\.size \} else \{ self\.capacity \}/self.capacity/|a conventional zone takes as much as it is long
ssd|zns-conv-flush|zns/flush.rs|s/let mapped = self\.flush_mapped\(now\)\?;/let mapped = now;/|a FLUSH covers conventional zones
ssd|zns-conv-fua|zns/conventional.rs|s/Command \{ fua, \.\.blocks_of/Command { fua: false \&\& fua, ..blocks_of/|FUA covers conventional zones
ssd|unit-fua|unit.rs|s/            && !fua\n//|the short way is for what needs no flush
ssd|unit-cut|unit.rs|s/            && offset & self\.unit\.wrapping_sub\(1\) == 0\n//|the short way is for whole units
ssd|unit-link|unit.rs|s/timelines_mut\(\)\.link_in\(times\.ready, self\.unit\)/timelines_mut().link_in(times.ready, 0)/|the short way takes the time of the link
ssd|zns-conv-dies|zns/conventional.rs|s/std::mem::swap\(own, device\.ftl_mut\(\)\.nand_mut\(\)\.timelines_mut\(\)\);//g; s/let own = self\.nand\.timelines_mut\(\);//|conventional and sequential zones share their dies
ssd|zns-conv-worn|zns/conventional.rs|s/for zone in \(0\.\.self\.config\.conventional_zones\(\)\)/for zone in (0..1)/|conventional zones share what is left of their flash
ssd|zns-conv-state|zns/recover.rs|s/ZoneCondition::Writable if self\.table\.is_conventional\(zone\)/ZoneCondition::Finished if self.table.is_conventional(zone)/|conventional zones are that after a power cut
ssd|zns-conv-across|zns/read.rs|s/let rest = self\.read_sequential\(now, \(first, 0\), blocks - mapped, behind\)\?;/let rest = self.read_sequential(now, (first, 0), blocks - mapped, \&mut [])?; let _ = behind;/|a read that crosses from conventional zones gets both parts
ssd|zns-conv-records|zns/layout.rs|s/numbers\.extend\(Some\(self\.conventional\)\.filter\(\|zones\| \*zones > 0\)\);//|records name the conventional zones
ssd|holes-served|actions.rs|s/if loaded\.is_err\(\) && self\.holes_in\(lpn, part\)\.bits\(\) != 0 \{/if false {/|a slot without data is not given out
ssd|holes-dropped|actions.rs|s/all = all\.and\(done\);/done?;/|what a policy decided is done, also after an error
ssd|holes-torn|actions.rs|s/let torn = self\.holes_in\(lpn, part\)\.bits\(\) != 0;/let torn = false;/|a write over half of what cannot be read fails
ssd|holes-unclosed|holes.rs|s/\*holes &= !parts\.bits\(\);//|a part that was stored is no hole
ssd|stranded-lost|holes.rs|s/self\.stranded\.insert\(lpn, unit\);//|what could not be programmed stays in DRAM
ssd|stranded-dirty-lost|holes.rs|s/unit\.dirty \|= older\.dirty;//|what the host wrote of a unit before counts when it is programmed at last
ssd|stranded-landed|actions.rs|s/buffer\.holes\.land\(entry\.lpn\);//|what is programmed is newer than what was stranded
ssd|stranded-flushed|decide.rs|s/Ok\(ready\.max\(self\.settle_stranded\(times\)\?\)\)/Ok(ready)/|a flush programs what was stranded
ssd|stranded-trimmed|holes.rs|s/self\.stranded\.retain\(\|lpn, _\| !inside\(lpn\)\);//|what was trimmed is nowhere
ssd|stranded-more|stranded.rs|s/buffer\.holes\.stranded\.len\(\) >= STRANDED_MAX/false/|writes fail before DRAM is full of what is stranded
ssd|areas-of-one-way|ssd.rs|s/ways: flash\.ways,/ways: flash.ways.min(1),/|areas of a buffer policy have a page for each die
ssd|auto-first-lap|classifier/auto.rs|s/if !is_first \{/if !is_first || now > 0 {/|the first lap after power-on tells nothing
ssd|auto-heat-stays|classifier/auto.rs|s/\*word -= \(\*word \| \(\*word >> 1\)\) & 0x5555;/*word -= (*word | (*word >> 1)) \& 0;/|heat falls with each lap
ssd|auto-all-measured|classifier/auto.rs|s/if write\.lpn\.raw\(\)\.is_multiple_of\(1 << self\.piece_shift\) \{/if true {/|one unit of a piece is measured
ssd|auto-no-appends|classifier/auto.rs|s/appends\.request\(request\);//|appends are told from requests
ssd|auto-unmerged|classifier/auto.rs|s/rank \* streams\.min\(Self::COUNT\) \/ Self::COUNT/rank/|fewer streams are shared by neighbours
ssd|auto-lap-ended|classifier/auto.rs|s/i32::from\(self\.lap\)\.max\(i32::from\(log\(now\.wrapping_sub\(self\.began\(\)\)\)\)\)/i32::from(self.lap)/|a lap that takes longer counts as long as it is already
ssd|auto-rings-hot|classifier/auto.rs|s/own = mean;//|what is written in order dies in order
ssd|ranges-first|classifier/ranges.rs|s/max_by_key/min_by_key/|the last range that begins before a unit has it
buffer|table-of-others|policies/aoi/lat.rs|s/learnt\.chunk == 1 << self\.shift && //|a table of other chunks is not taken
buffer|cut-trim|request.rs|s/let cut_tail = u32::from\(self\.tail != 0\);/let cut_tail = 0;/|a TRIM leaves the entries alone that it only cuts
buffer|run-wraps|entries/fresh.rs|s/if victim\.newer == end \{ oldest \} else \{ NodeId\(victim\.newer\) \}/NodeId(victim.newer)/|a run of victims that goes once round its list ends where it began
buffer|run-last-block|policies/blocks.rs|s/last % self\.pages \+ 1/last % self.pages/|a run over blocks has all pages of its last block
buffer|run-beside-block|policies/blocks.rs|s/let newer = first\.and_then\(\|before\| e\.slab\(\)\.newer\(before\)\);/let newer = first.and_then(|before| e.slab().newer(before)).filter(|_| false);/|pages of a block lie together in its list
buffer|run-not-fresh|entries/fresh.rs|s/if fresh < group\.len \{/if fresh == 0 {/|a run ends before pages that are there
buffer|end-of-keys|policies/blocks.rs|s/first\.checked_add\(self\.pages - 1\)/Some(first)/|the last block does not go on with the first pages
buffer|tables-free|sizing.rs|s/\(config\.bytes - tables\) \/ entry/config.bytes \/ entry/|tables are paid for with entries
buffer|discards-uncounted|entries/trim.rs|s/owner\.trim_discards \+= 1;//|what a TRIM discards is counted
buffer|companions|entries/program.rs|s/index\(SCAN_MAX\) - 1/index(SCAN_MAX)/|the search for companions of a victim is bounded
buffer|flush-order|entries/program.rs|s/dirty\.reverse\(\);//|FLUSH programs the oldest entry first
buffer|fua-untold|cache.rs|s/program_request\(r, out\);\s*self\.tell_cleaned\(\);/program_request(r, out);/|policies hear of entries that FUA cleaned
buffer|mixed-run|entries/run.rs|s/ && next\.dirty == dirty//|a run is all clean or all dirty
buffer|fresh-present|entries/fresh.rs|s/found\.unwrap_or\(pages\.len\)/pages.len/|pages that are there already are not fresh
buffer|fresh-clean|entries/fresh.rs|s/u32::from\(victim\.dirty == 0\)/u32::from(victim.dirty != 0)/|clean and dirty victims of a run are told apart
buffer|fresh-own-victim|policies/pt_lru.rs|s/pages\.up_to\(1\)/pages/|of fresh pages that are one another's victims one takes an entry's place
buffer|small-to-main|policies/s3_fifo.rs|s/COUNT_TO_MAIN: u16 = 2/COUNT_TO_MAIN: u16 = 1/|S3-FIFO lifts what was accessed twice
buffer|longest|policies/vbbms.rs|s/r\.n > self\.longest/r.n >= self.longest/|VBBMS: requests up to `longest` are random
buffer|any-page|policies/aoi/classify.rs|s/u64::from\(mapped\) \* 2 > u64::from\(piece\.n\)/mapped > 0/|an update is a write most of whose pages are mapped
buffer|no-reset|policies/aoi/classify.rs|s/TrimReset::Touch => self\.lat\.clear\(&whole, false\)/TrimReset::Touch => {}/|a large TRIM makes its chunks as good as new
buffer|deadline|policies/aoi/areas.rs|s/self\.deadline >= self\.slots/false/|appends do not wait for a full flash page for ever
study|trace-again|run/traces.rs|s/return checked\.source\(\);/return TraceSource::open(path, options);/|a trace is read once for all points
study|series-lost|run/devices.rs|s/if with_series \{ run\.series \} else \{ Series::default\(\) \}/if with_series { Series::default() } else { run.series }/|a row keeps the series that a figure needs
study|bandwidth-of-all|series.rs|s/self\.bandwidth\(gc\?, self\.0\.len\(\)\)/self.bandwidth(gc? - gc?, self.0.len())/|bandwidth since collection began counts from there
study|warm-up-twice|cell.rs|s/self\.cpu \/= cells\.max\(1\);//|the time of a shared warm-up is counted once
study|warm-up-lost|cell.rs|s/\(self\.only, self\.cpu, self/(self.only, Duration::ZERO, self/|and not lost
study|warm-up-kept|cell.rs|s/self\.policy = new_policy\(config, &self\.sizes\)\.ok\(\);//|a policy that begins empty has nothing of the warm-up
study|warm-up-counts|cell.rs|s/self\.warm = policy\.stats\(\)\.clone\(\);//|what the warm-up did does not count
study|warm-up-length|stream/mix.rs|s/"offset": source\.offset,\s*"warm_up": bytes_or_load\(length\)/"offset": source.offset/|warm-ups of other lengths are not shared
study|warm-up-place|stream/mix.rs|s/"offset": source\.offset,\s*"warm_up": bytes_or_load\(length\)/"warm_up": bytes_or_load(length)/|warm-ups at other addresses are not shared
study|warm-up-target|stream/mix.rs|s/(let identity = json!\(\{"sources": warming), "target": workload\.target\(\)/$1/|warm-ups beside another target are not shared
study|key-volatile|key.rs|s/"volatile": study\.volatile,//|results with other flushes are not taken
study|key-version|key.rs|s/"version": version,/"version": version.len(),/|results of another version are not taken
study|failed-stays|run/mod.rs|s/is_some_and\(\|row\| row\.error\.is_none\(\)\)/is_some()/|failed points are tried again
study|torn-line|store.rs|s/rposition\(\|byte\| \*byte == b'\\n'\)/rposition(|_| true)/|a line without its end does not count
study|published-sizes|file/published.rs|s/\(self\.sizes\.is_empty\(\) \|\| self\.sizes\.contains\(&size\)\)/(size > 0 || self.sizes.is_empty())/|a published number is about its sizes alone
study|published-places|file/published.rs|s/among\(&self\.workloads, workload\)/among(\&self.workloads, self.workloads.first().map_or(workload, |first| first))/|a published number is about its workloads alone
study|verify-blind|verify.rs|s/if kept != found && /if kept.len() > 999 \&\& /|a number that is not what the table says is told
study|verify-sample|verify.rs|s/take\(count\.unwrap_or\(usize::MAX\)\)/take(usize::MAX)/|a sample has as many points as asked
study|part-policies|report/part.rs|s/self\.options\.has_workload\(workload\) && self\.options\.has_policy\(label\)/self.options.has_workload(workload) \&\& !label.is_empty()/|a check that needs policies which a part leaves out is left out
study|part-places|report/part.rs|s/self\.options\.has_workload\(workload\) && self\.options\.has_policy\(label\)/!workload.is_empty() \&\& self.options.has_policy(label)/|and so is one that needs other workloads
study|part-average|report/part.rs|s/own\.all\(\|name\|/own.any(|name|/|an average needs all of its workloads
study|part-about|report/part.rs|s/figure\.about\.iter\(\)\.all\(lacks\)/figure.about.iter().any(lacks)/|one policy that a figure is about is enough
study|part-empty|report/part.rs|s/if part\.policies\.is_empty\(\)/if part.policies.len() > 999/|a figure of which nothing is left does not show all
study|part-published|report/part.rs|s/ && !is_gone\(&one\.policies, &policies\)//|a published number goes with its policies
study|part-strangers|status.rs|s/if options\.is_part\(\) \{ 0 \} else \{ others\.len\(\) \}/others.len()/|results of workloads and policies that nobody asked for are no strangers
study|area-reads|report/metric.rs|s/accessed\.of\(one\.reads, one\.writes\)/one.reads + one.writes/|a hit ratio of reads in an area counts reads
volume|spare-young|volume/log/trims.rs|s/Trim::Spare if self\.now < since \+ SPARE_AGE => Way::Wait,//|a file is told of log segments that stay free
volume|spare-never|volume/log/trims.rs|s/if !stays_free => Way::Free/if !stays_free || self.now > since => Way::Free/|a file is told of them in the end
volume|journal-cleaned|volume/cleaner/victim.rs|s/ && !self\.journal\.protects\(segment\)//|the cleaner leaves the ring of a journal alone
volume|journal-for-ever|log/journal.rs|s/self\.appended\[at\] - segment\.mark < self\.lap\[at\]/self.lap[at] > 0/|what a lap left behind is no part of the set
volume|journal-too-large|log/journal.rs|s/set \* SHARE <= layout\.usable_segments\(\)/set > 0/|a set takes a quarter of the log at most
volume|journal-moved|log/journal.rs|s/self\.appended\.iter_mut\(\)\.for_each\(\|appended\| \*appended \+= longest\);/let _ = longest;/|log segments of a journal that moved are ordinary ones
volume|journal-untold|log/journal.rs|s/let lap = if fits \{ \[u64::MAX; 2\] \} else \{ \[0; 2\] \};/let lap = [0; 2];/|after an opening the set is left alone until it is said where journals are
volume|marker-for-ever|log/flush.rs|s/self\.host > self\.said && self\.durable >= self\.host/self.durable > self.said || self.host > self.durable/|no marker follows a marker
volume|marker-unsaid|volume/log/append.rs|s/durable_seq: Seq::new\(durable\)/durable_seq: Seq::new(0 * durable)/|a header says what is durable
volume|marker-unlooked|recovery/replay.rs|s/let mut may_begin = !identity\.closed;/let mut may_begin = false;/|a header that rots at the start of a log segment is missed
volume|marker-behind-next|recovery/replay/walk.rs|s/chain\.durable_behind = chain\.durable_behind\.max\(durable\);/if chain.durable_behind == 0 { chain.durable_behind = durable; }/|the last header behind a gap says most
volume|scrub-once|volume/scrub/walk.rs|s/if !good && walk\.look_again\(\) \{/if false {/|what does not fit is read once more
volume|scrub-dead|volume/scrub/walk.rs|s/let held = self\.is_live\(&block\)\?;/let _ = self.is_live(\&block)?; let held = Held::Yes;/|only live blocks are damaged
volume|scrub-laundered|volume/scrub/walk.rs|s/self\.layout\.is_in\(listed\.at, block, listed\.crc\)/!block.is_empty()/|a block is compared with its checksum
volume|scrub-cut-gap|volume/scrub/walk.rs|s/walk\.take_header\(&batch, at\);/if let Some(lost) = walk.lost() { self.lose_header(walk, lost); } walk.take_header(\&batch, at);/|what a power cut left behind a gap is no damage
volume|scrub-under-way|volume/scrub/walk.rs|s/under_way\.into_iter\(\)\.chain\(used\)\.min\(\)/used.map(|used| used + under_way.map_or(0, |_| 0))/|batches under way are not looked at
volume|scrub-unlisted|scrub/walk.rs|s/let unlisted = self\.seen < live && !self\.told;/let unlisted = self.seen > live;/|a live block that no header lists tells of a damaged one
volume|scrub-in-memory|volume/scrub/mend.rs|s/self\.checkpoint\.sweep_from\(page\);/let _ = page;/|a damaged page that is in memory is swept next
volume|scrub-root|volume/scrub/copies.rs|s/!newest \|\| root\.generation == self\.checkpoint\.generation\(\)/true || newest/; s/let newest = self\.newest_root_at\(\) == Some\(at\);/let newest = false;/|the newest root is where it was written
volume|scrub-root-race|volume/checkpoint/commit.rs|s/self\.scrub\.holds_copies\(\) \|\| //|no root is written while a scrub reads one
volume|scrub-hurries|scrub/mod.rs|s/if busy \{ BUSY_FACTOR \}/if busy { 1 }/|pauses are longer beside a host
volume|root-unsettled|volume/checkpoint/commit.rs|s/self\.flushes\.durable\(\) < work\.last_seq/self.log.complete() < work.last_seq/|what a root points to is durable before it is written
volume|root-unflushed|volume/checkpoint/commit.rs|s/if self\.checkpoint\.go_to\(Phase::RootFlush\) \{\s*self\.flushes\.want_root\(\);\s*\}/self.commit();/|a checkpoint counts when its root is durable
volume|given-back-early|volume/checkpoint/commit.rs|s/self\.give_back\(&work\.emptied\)/let all = self.segments.empties(); self.give_back(&all)/|log segments that became empty after X are kept
volume|spoiled-recovery|volume/checkpoint/commit.rs|s/self\.checkpoint\.recover_again\(new\.slot, new\.records\);//|a spoiled checkpoint of the opening keeps what recovery found
volume|run-dropped|map/runs.rs|s/self\.counted && swept >= self\.swept \+ pages/self.counted \&\& swept > self.swept \&\& pages > 0/|a run is kept until the sweep has passed every page
volume|map-uncleaned|volume/checkpoint/compact.rs|s/if !self\.meta_is_sparse\(\) \|\|/if self.layout.segments() > 0 ||/|log segments of the map become free though its pages do not change
volume|thin-overwrite|snapshots/space.rs|s/return u64_from\(\(from\.\.from \+ range\.blocks\)\.filter\(is_new\)\.count\(\)\);/let _ = is_new; return range.blocks;/|what is there can be written over in a full thin volume
volume|clones-alike|snapshots/space.rs|s/census\.writable \+= if writable \{ pages \} else \{ 0 \};//|each page of a member that can be written may get an image of its own
volume|clones-uncounted|volume/snapshots/space.rs|s/\.max\(segments \+ begun\)/.max(begun)/|what the maps of clones may grow to counts before data is let in
volume|kept-for-one|volume/mod.rs|s/KEPT_FOR_META \+ self\.members\.kept_more\(\)/KEPT_FOR_META/; s/Layout::reserve\(\) \+ self\.members\.kept_more\(\)/Layout::reserve()/|log segments are kept for a checkpoint of all members
volume|lost-page-dropped|volume/checkpoint/sweep.rs|s/records\.extend_from_slice\(told\);//|what runs have of a page that cannot be read goes to a new run before they are dropped
volume|lost-page-early|volume/checkpoint/sweep.rs|s/let swept = if unread\.is_empty\(\)/let swept = if true/|.. which stays until the sweep comes to that page again
volume|unfound-free|segments/mod.rs|s/self\.keep_unfound\(\);//|what a root points to is kept though a block of its checkpoint rotted
volume|lost-page-partly|checkpoint/sweep.rs|s/runs\[oldest\.\.\]/runs[oldest..oldest + 1]/|where that cannot be read either, all runs from the first one on stay
volume|told-unbounded|volume/checkpoint/sweep.rs|s/told > 0 \|\| //|one checkpoint repeats what runs have of few pages that cannot be read
volume|touched-unread|map/capture.rs|s/if self\.page\(Self::place\(Lba::new\(first\)\)\.0\)\.is_none\(\)/if false/|what was repeated of a page changes nothing where its checkpoint comes to nothing
volume|thin-unlimited|volume/snapshots/space.rs|s/!self\.members\.is_alone\(\) \|\| self\.layout\.is_thin\(\)/!self.members.is_alone()/|a thin volume refuses writes before the cleaner is stuck
volume|room-unpadded|snapshots/space.rs|s/unit \* batches \+ partial/batches + partial/|what a full volume can hold allows for padding
volume|packed-unpadded|layout.rs|s/\.max\(1 \+ SENT_EARLY \* \(unit_blocks - 1\)\)/.max(1)/|what a volume may export allows for batches that are padded
volume|cleaned-short|volume/log/append.rs|s/BATCH_BLOCKS_MAX\.min\(self\.segment_blocks\(\)\)/self.options.batch_blocks/|the cleaner packs log segments however short batches of the host are
volume|lost-silent|volume/zones/map.rs|s/!self\.options\.give_up_zones \|\| !error/!error/|pages of the map are given up only on demand
volume|lost-guess|volume/recovery/rebuild/pages.rs|s/sure && tells\(segment\)/sure/|headers tell of a log segment whose live blocks are as many as they say
volume|lost-evicted|volume/inspect.rs|s/self\.load_pages\(&\[key\], false\);/self.load_page(key);/|who looks at all of the map has all of it in memory
volume|lost-unread|volume/recovery/rebuild/pages.rs|s/all\(\)\.all\(\|\(id, _\)\| !unread\(id\)\)/true/|a block without a version maps nothing only if all log segments were read
volume|lost-unsalvaged|volume/zones/map.rs|s/self\.checkpoint\.set_recovered\(beneath\(salvaged, recovered\)\);/let _ = salvaged; self.checkpoint.set_recovered(beneath(Vec::new(), recovered));/|what headers tell of pages that are gone is not lost
volume|lost-uncounted|volume/zones/map.rs|s/self\.segments\.of_mut\(wrong\.segment\)\.quarters = wrong\.found;/let _ = wrong;/|what pages that are gone pointed to is not live
volume|lost-stale|volume/zones/map.rs|s/self\.map\.mark_stale\(Map::place\(record\.lba\)\.0, self\.checkpoint\.runs_end\(\)\);/let _ = record;/|what recovery found is read again after headers were asked
volume|snapshot-copy-sure|volume/recovery/rebuild/headers.rs|s/!self\.alone && self\.told\[index64\(lba\.raw\(\)\)\] == Told::Old;/!self.alone \&\& self.told.is_empty();/|a copy that was made for a snapshot says nothing of the device
volume|no-restriction|volume/checkpoint/capture.rs|s/self\.segments\.restrict\(&reserve\);//|between two roots only log segments that both list are taken
volume|unlisted|segments/mod.rs|s/position\(\|id\| self\.of\(\*id\)\.listed\)/position(|_| true)/; s/self\.available -= 1;/self.available = self.available.saturating_sub(1);/|only listed log segments are taken
volume|read-too-early|volume/checkpoint/sweep.rs|s/self\.checkpoint\.recovered\(\)\.is_empty\(\) && self\.checkpoint\.writes_counted\(\)/true/|no page is read before what recovery found counts
volume|evicted-early|map/mod.rs|s/ \|\| page\.keep_until > committed//|a page stays until the checkpoint with its changes counts
volume|unverified|recovery/replay.rs|s/if !found\.fits\(buffer\.bytes\(\)\) \{/if false {/|batches that may not have been durable are verified
volume|older-attempt|recovery/replay.rs|s/other\.batch\.header\.attempt >= header/other.batch.header.attempt <= header/|the highest attempt counts
volume|trim-last|recovery/replay.rs|s/(        for trim in &found\.batch\.trims \{.*?\n        \}\n)(.*?)(        Ok\(\(\)\)\n    \}\n\n    fn set)/$2$1$3/s|trims come before the data of their batch
volume|rotten-end|recovery/replay/walk.rs|s/chain\.durable_behind = chain\.durable_behind\.max\(durable\);/let _ = durable;/|a rotten header is not the end of the log
volume|replayed-gap|recovery/replay.rs|s/\*\*seq == \*expected\)/**seq > 0 \&\& *expected > 0)/|the log ends at the first gap
volume|attempts-left|recovery/replay.rs|s/earlier\.extend\(take\(&mut found, one\)\);/take(\&mut found, one);/|an attempt that was made again does not count where the last one is erased
volume|attempts-at-once|recovery/replay.rs|s/if !self\.earlier\.is_empty\(\) \{\n\s*backing\.flush\(\)\.map_err\(failed\)\?;\n\s*\}//|earlier attempts are erased before the last one
volume|retry-count|volume/log/append.rs|s/self\.gain\(to\);\n\s*self\.lose\(from\);/self.gain(to);/|a batch that moves takes its live counts along
volume|no-spoil|volume/log/suspects.rs|s/self\.checkpoint\.note_moved\(stream, seq\);/let _ = (stream, seq);/|a checkpoint whose batches moved is begun again
volume|chain-order|volume/log/append.rs|s/Progress::Waiting \| Progress::UnderWay => break,/Progress::Waiting | Progress::UnderWay => {}/|a batch is complete when all before it in its log segment are
volume|replaced-sent|volume/host.rs|s/\n\s*&& self\.log\.batch\(batch\)\.seq\.is_none\(\)\n(\s*&& self\.log\.batch\(batch\)\.stream\.is_user\(\)\n\s*\{\n\s*self\.replace)/\n$1/|a block that was sent is not replaced in place
volume|flush-early|volume/log/flush.rs|s/Purpose::Flush \{ covers: complete \}/Purpose::Flush { covers: self.log.seq() }/|a flush covers complete batches only
volume|flush-late|volume/log/flush.rs|s/then_some\(covers\)/then_some(self.log.complete().max(covers))/|a flush covers what was complete when it began
volume|flush-failed|volume/log/flush.rs|s/self\.freeze\(Frozen::Flush\);/self.flushes.since = None;/|after a flush that failed nothing is durable any more
volume|resize-forgets|volume/resize/shrink.rs|s/self\.map\.image\(key\)\.page\.is_block\(\) \|\| self\.map\.is_dirty\(key\)/key == usize::MAX/|what is behind a smaller end is gone from the directory before the label says so
volume|resize-rot-waits|volume/resize/shrink.rs|s/find\(\|key\| self\.map\.ready\(\*key\) == Ready::Damaged\)/find(|_| false)/|a page behind a smaller end that cannot be read any more is told
volume|resize-rot-retried|volume/resize/shrink.rs|s/blocks: end\.min\(page_end\) - at/blocks: end.max(page_end) - at/|.. also one that is not the first
volume|resize-unswept|volume/resize/shrink.rs|s/Phase::Checkpoint \{ number: self\.checkpoint\.next_number\(\) \}/Phase::Checkpoint { number: 0 }/|a root names no place behind the end before the label says so
volume|resize-stays|volume/resize/shrink.rs|s/self\.segments\.leave\(&list\);//|log segments behind the end are not taken again
volume|resize-runs|checkpoint/sweep.rs|s/self\.runs\.list\.iter_mut\(\)\.for_each\(\|run\| run\.swept = self\.swept\);//|a run is kept for a whole round after the sweep jumped
volume|resize-one-size|volume/recovery/restore.rs|s/\(member, member\.logical_blocks\)/(member, device)/|a snapshot has the size that it had
volume|resize-shared-directory|volume/resize/mod.rs|s/if !self\.members\.has_directory\(at, place\) \{/if place.crc != 1 {/|what a smaller device has no more of its directory may be that of a snapshot
volume|resize-unrecorded|volume/resize/mod.rs|s/Phase::Record \{ number \} if self\.checkpoint\.committed\(\) >= number =>/Phase::Record { .. } =>/|nothing is written behind the old end of a clone before a root says the new one
volume|resize-replayed|volume/recovery/restore.rs|s/Written \{ slot, blocks: member\.blocks \}/Written { slot, blocks: self.layout.geometry().logical_blocks }/|what was written to a clone counts up to its own end
volume|resize-round|volume/snapshots/change.rs|s/self\.fit_pages\(\);//|a run is kept for a whole round when the largest member goes
volume|resize-table|volume/recovery/restore.rs|s/fit\(&mut table, self\.layout\.segments\(\), self\.layout\.fixed\(\)\);/table.resize(onefold_units::convert::index(self.layout.segments()), Segment::FREE);/|log segments that held a label are free when it has moved, and the others are taken
modes|no-data-flush|partitioned/commit.rs|s/self\.stage = Stage::DataFlush;\n\s*self\.ask_flush\(\);/self.write_log();/|data is durable before its log block is written
modes|no-log-flush|partitioned/commit.rs|s/self\.stage = Stage::LogFlush;\n\s*self\.ask_flush\(\);/self.apply();/|nothing is answered before the log block is durable
modes|tables-unflushed|partitioned/checkpoint.rs|s/self\.stage = Stage::TablesFlush;\n\s*self\.ask_flush\(\);/self.checkpoint.work = Some(work);\n            return self.write_root();/|tables are durable before the root that names them
modes|logs-first|partitioned/checkpoint.rs|s/self\.stage = Stage::RootFlush;\n\s*self\.ask_flush\(\);/self.end_checkpoint();/|logs begin anew when the root is durable
modes|one-slot|partitioned/checkpoint.rs|s/1 \+ partition\.place\.slot % 2/1/|a table goes to the slot that the root does not name
modes|freed-early|partitioned/cleaner/mod.rs|s/job\.phase = Phase::Settle\(self\.journal\.last\(\)\);/job.phase = Phase::Settle(0);/|what was emptied is free when the moves are durable
modes|freed-unlisted|partitioned/cleaner/free.rs|s/job\.phase = Phase::Checkpoint\(self\.stats\.checkpoints \+ 1\);/job.phase = Phase::Checkpoint(0);/|.. and a checkpoint lists it
modes|too-early|partitioned/cleaner/mod.rs|s/phase: Phase::Wait\(self\.journal\.last\(\)\)/phase: Phase::Wait(0)/|the cleaner waits for transactions under way
modes|stale-move|partitioned/cleaner/mod.rs|s/if !self\.is_current\(one\.lba, one\.from\) \{\n\s*self\.stats\.clean_wasted/if false {\n self.stats.clean_wasted/|a copy of an overwritten block is dropped
modes|below-head|partitioned/cleaner/mod.rs|s/job\.floor\.max\(job\.head\)/job.floor/|holes that were filled are no free space
modes|temporary|partitioned/tables.rs|s/temporary\.invalidate\(lba, old\);/let _ = old;/|an overwritten block is invalid in both tables
modes|incarnation|partitioned/replay.rs|s/one\.incarnation == self\.incarnation\n\s*&& //|transactions of an earlier mount do not count
modes|gap|partitioned/replay.rs|s/one\.seq\.raw\(\) == \*next/one.seq.raw() >= *next/|the log ends at the first gap
modes|pins|partitioned/io.rs|s/!\(changes && self\.is_pinned/!(false \&\& changes \&\& self.is_pinned/|what the host reads is not overwritten
modes|acknowledged|partitioned/journal.rs|s/self\.open\.seq - u64::from\(self\.open\.changes\.is_empty\(\)\)/self.open.seq - 1/|a flush covers the open transaction
modes|threshold-ignored|han.rs|s/situation\.clean_share \* f64::from\(valid \+ invalid\)/f64::from(valid.min(0))/|a partition of han is cleaned above its threshold
modes|threshold-never|han.rs|s/worth\.or_else\(\|\| above_threshold\(situation\)\)/worth/|and then it is
volume|unshared|volume/snapshots/share.rs|s/match self\.is_shared\(here, at\) \{\n\s*Held::Yes => \{\}/match self.is_shared(here, at) {\n Held::Yes => self.lose(at),/|a block stays live while another member has it
volume|parted-late|volume/snapshots/share.rs|s/is_none_or\(\|epoch\| epoch < parted\)/is_none_or(|_| false)/|members share what was written before they parted
volume|copied-alone|volume/log/append.rs|s/if entry\.at == from \{/if entry.at == from && count == 0 {/|the cleaner moves a block for every member
volume|run-unshared|volume/snapshots/change.rs|s/run\.members \|= \(run\.members >> parent & 1\) << slot;//|a new member has the runs of its parent
volume|capture-unshared|volume/checkpoint/sweep.rs|s/new\.run\.members \|= 1 << slot;//|and that of the checkpoint it comes with
volume|directory-freed|volume/checkpoint/write.rs|s/old\.location\.is_block\(\) && !self\.members\.has_directory\(at, old\)/old.location.is_block()/|a block of the directory stays while a member has it
volume|image-freed|volume/checkpoint/write.rs|s/old\.page\.is_block\(\) && !self\.members\.has_image\(&self\.map, page, old\)/old.page.is_block()/|an image of a page stays while a member has it
volume|directory-stale|volume/checkpoint/write.rs|s/!work\.directories\.contains\(&\(\*other, at\)\)\n\s*&& //|a directory block that is still to be written is not shared
volume|unmarked|snapshots/share.rs|s/let Life::Deleted \{ next \} = member\.life else \{ return None \};/let next = match member.life { Life::Deleted { next } => next, Life::Doomed { .. } | Life::Marking { .. } => 0, _ => return None };/|a member is freed when it is marked as deleted
volume|deleted-early|volume/snapshots/change.rs|s/if next == self\.map\.pages_of\(slot\)\n/if next <= self.map.pages_of(slot)\n/|a member goes when all its pages are unmapped
volume|deleted-waits|volume/snapshots/change.rs|s/(\/\/ It goes with the next one.*?\n\s*)self\.checkpoint\.want\(\);/$1/|a member whose page is being read goes with the next checkpoint
volume|held-unkept|volume/snapshots/share.rs|s/(committed\(\) \+ 1\);\n\s*for slot in self\.members\.slots\(\)\.collect::<Vec<_>>\(\) \{\n\s*)self\.map\.keep\(Map::key\(slot, page\), number\);/$1let _ = (slot, number);/|pages that the cleaner needs together stay until all are there
volume|judged-alone|volume/map/counting.rs|s/if !keys\.iter\(\)\.all\(there\) \{\s*return false;\s*\}/let _ = there;/|what recovery replaced is judged when every member's page is there
volume|remap-read-early|log/mod.rs|s/self\.remaps\.then\(\|\| self\.records\.clean\[self\.index_of\(at\)\]\.source\)/self.remaps.then_some(at)/|blocks are read at their sources until their batch is complete
volume|remap-failed|volume/cleaner/remap.rs|s/if result\.is_ok\(\) \{/if result.is_ok() || blocks > 0 {/|blocks of a remap that failed count nowhere
volume|remap-not-back|volume/cleaner/remap.rs|s/self\.take_back\(id\);/self.log.batch_mut(id).records.clean.clear();/|the map points at the sources again
volume|remap-no-spoil|volume/cleaner/remap.rs|s/self\.checkpoint\.spoil\(\);//|a checkpoint with moves that were taken back is begun again
volume|remap-for-ever|volume/cleaner/remap.rs|s/self\.cleaner\.copy_next\(COPIED_AFTER_FAILURE\);//|after a remap that failed the cleaner copies
volume|remap-header-first|volume/log/append.rs|s/self\.ask\(IoKind::Remap, Purpose::Remap\(id\), first, blocks\);/let _ = first; self.write_batch(id, padded); self.ask(IoKind::Remap, Purpose::CleanHeader(segment), first, blocks);/|a batch is complete when its blocks are there as well
volume|remap-once|volume/log/append.rs|s/if batch\.remaps && blocks > 0 \{/if batch.remaps \&\& blocks > 0 \&\& batch.attempt == 0 {/|a batch that goes elsewhere is remapped there as well
volume|remap-checksum|volume/cleaner/moves.rs|s/push\(CleanRecord \{ lba, birth, crc, source \}\)/push(CleanRecord { lba, birth, crc: crc.wrapping_add(1), source })/|a block that is moved takes its checksum along
volume|remap-regained|segments/mod.rs|s/self\.empty -= u32::from\(self\.of\(id\)\.is_empty_closed\(\)\);\n(\s*let segment = self\.of_mut\(id\);\n\s*segment\.quarters \+= quarters)/$1/|a log segment that gets blocks back is not empty any more
volume|remap-mixed|volume/cleaner/remap.rs|s/self\.log\.batch\(open\)\.remaps != remaps/false/|a batch has copied or remapped blocks, not both
volume|remap-unvisited|cleaner/walk.rs|s/self\.blocks\.push_back\(found\);/let _ = found;/|what was taken back is looked at again before the victim ends
volume|remap-matched|volume/cleaner/moves.rs|s/self\.match_batch\(false\);//|what is copied begins a batch of its own
volume|remap-walks|cleaner/mod.rs|s/walk\.copy\(\);/let _ = walk;/|after a remap that failed the victims at hand are copied
volume|trims-unhurried|volume/log/trims.rs|s/let hurry = .*?;/let hurry = false;/|trims keep no pause where log segments are short
volume|one-victim|volume/cleaner/mod.rs|s/const VICTIMS_MAX: usize = 4;/const VICTIMS_MAX: usize = 1;/|several victims are walked side by side where log segments are short
volume|remap-chain|volume/cleaner/remap.rs|s/self\.write_batch\(id, 1 \+ blocks\);/let left = self.log.batch(id).records.blocks(); self.write_batch(id, 1 + left);/|an empty header keeps the place of its batch
volume|dead-copy|volume/snapshots/share.rs|s/self\.forget_copy\(at\);//|a copy that is dead when it is sent says so
volume|left-out|volume/recovery/mod.rs|s/left_out\.erase\(backing, &volume\.layout\)\?;/let _ = left_out;/|an opening erases the headers of batches that it leaves out
volume|rebuilt-unsettled|volume/recovery/rebuild/whole.rs|s/ && volume\.is_settled_at\(backing, survey\)//|a checkpoint whose data a power cut took is not taken
volume|rebuilt-old-use|volume/recovery/rebuild/whole.rs|s/ && epoch == use_now//|what was durable in an earlier use of a log segment says nothing of this one
volume|rebuilt-guess|volume/recovery/rebuild/headers.rs|s/if self\.alone \|\| follows/if true/|where two versions may be the newest the block is lost
volume|rebuilt-torn|volume/recovery/rebuild/headers.rs|s/sure \|\| is_whole\(backing, found\)\.unwrap_or\(false\)/true/|batches that may not have been durable count if they are whole
volume|rebuilt-over|volume/recovery/rebuild/image.rs|s/Location::new\(seen\.start \+ 1\)/Location::new(seen.start)/|a rebuild writes over no header
volume|rebuilt-undurable|volume/recovery/rebuild/image.rs|s/seen\.is_durable && //|a rebuild writes over no data that a second attempt verifies
volume|rebuilt-meta|volume/recovery/rebuild/image.rs|s/ && !seen\.is_meta\(\)//|a rebuild writes over no checkpoint
volume|rebuilt-judged|volume/recovery/rebuild/whole.rs|s/durable\.max\(survey\.durable_in\(root\.incarnation\)\)/durable/|a checkpoint that missed what was durable is not taken
volume|rebuilt-any-opening|volume/recovery/rebuild/survey.rs|s/one\.seq\(\) <= openings\[&incarnation\]\.1;/one.seq() <= openings.values().map(|o| o.1).max().unwrap_or(0);/|what its own opening did not call durable counts only if it is whole
volume|rebuilt-unflushed|volume/recovery/rebuild/image.rs|s/backing\.flush\(\)\.map_err\(failed\)\?;\n(\s*let extents)/$1/|a new checkpoint is durable before its root is written
volume|rebuilt-erased-first|volume/recovery/rebuild/mod.rs|s/(    roots\.write\(backing, &root\)\?;)/    erase_headers(backing, \&survey, \&homes).map_err(|_| MountError::Opens)?;\n$1/|headers stay until the root counts
volume|rebuilt-zone-left|volume/recovery/rebuild/survey.rs|s/follows \|\| !stays/true || !stays/|what an opening may have left out is uncertain
volume|rebuilt-zone-active|volume/recovery/rebuild/image.rs|s/finish_zones\(backing, zones, &homes\.segments\)\?;//|zones that nobody goes on writing are finished before others are begun
volume|rebuilt-root-active|volume/recovery/rebuild/roots.rs|s/finish_zones\(backing, zones, &\[\]\)\?;//|.. and before a zone for roots is
volume|rebuilt-unreset|volume/recovery/rebuild/image.rs|s/backing\.reset\(ZoneId::new\(id\.raw\(\)\)\)\?;//|a zone is empty before a rebuild writes to it
volume|preload-over|volume/map/preload.rs|s/self\.map\.pages_of_all\(\) > self\.options\.map_pages \|\| //|what is read in the background takes the place of nothing
volume|preload-crowd|map/loads.rs|s/self\.requests >= most \|\|/most == u32::MAX ||/|few requests in the background are under way at a time
volume|preload-lost|map/loads.rs|s/self\.requests -= 1;//|those that are over make room for others
volume|batch-long|log/service.rs|s/let each = took\.saturating_mul\(16\)/let each = 0 * took/|batches are shorter on a slow backing
volume|victim-full|volume/cleaner/victim.rs|s/ - least;/;/|the cleaner does not copy nearly full log segments while it has time
volume|victim-late|volume/cleaner/victim.rs|s/\|least\| least\.min\(most\)/|_| if above == 0 { 0 } else { most }/|.. and begins with those before the last free one is about to be taken
volume|victims-unfit|volume/cleaner/mod.rs|s/!self\.has_room_to_move\(live\)/false/|no victim is begun beside others that would not fit with them
volume|map-unkept|volume/snapshots/space.rs|s/ \+ grows\);/);/|what the map may still take is kept from the host and the cleaner
volume|rebuilt-offline|volume/recovery/rebuild/headers.rs|s/survey\.offline \|\| //|what a zone that is offline may have had is uncertain
volume|batch-full|volume/log/append.rs|s/let short = self\.segments\.free_count\(\) < self\.reserve\(\);/let short = false;/|batches are long where log segments are short
volume|batch-least|log/service.rs|s/SLOW_BLOCKS\.max\(REQUEST_BLOCKS_MAX\.div_ceil\(batches\.max\(1\)\) \+ 1\)/SLOW_BLOCKS/|the longest request fits the batches of the host
volume|close-unswept|volume/checkpoint/sweep.rs|s/Closing::Begins if self\.can_sweep_all\(\)/Closing::Begins if false/|closing leaves no runs
volume|image-changed|map/page.rs|s/self\.image = ImageOf::Copy\(self\.copy\(\)\);//|an image has what its page had at the capture
volume|slice-short|map/slices.rs|s/from\.saturating_sub\(1\)\.min\(to\)/from.min(to)/|a block of a run that ends in the middle of a page counts for it
device|table-forgotten|ssd/open.rs|s/image\.recall\(&mut ssd\);//|what the buffer has learnt is there after a stop
device|table-cut|ssd/power.rs|s/self\.image\.recall\(&mut ssd\);//|a power cut leaves the table of the last checkpoint
device|table-late|ssd/mod.rs|s/if self\.learnt_saved != checkpoints/if self.learnt_saved == u64::MAX/|the table is kept with each checkpoint of the map
device|fallen-unheard|driver/threads.rs|s/if thread::panicking\(\) \{/if false {/|whoever waits hears of a panic
device|watch-unheard|driver/watch.rs|s/engine\.set_journal\(now, self\.detector\.ranges\(\), true\);//|what the detector finds is told to the engine
device|layer-unflushed|volume/backing.rs|s/Kind::Layer\(volume\) => volume\.flush\(\)\.map\(wait\)\.map_err\(to_layer_above\),/Kind::Layer(_) => Ok(()),/|a flush of a layer is one of what it lies on
device|fallen-used|driver/mod.rs|s/self\.over = true;//|a volume that somebody panicked with is not used any more
device|refused-for-ever|volume/kernel.rs|s/if again && !slot\.refusals\.are_too_many\(\) \{/if again {/|the kernel is not asked again for ever
device|refused-at-once|volume/refusals.rs|s/self\.0 \+= 1;/self.0 += REFUSALS_MAX;/|it is asked again for some time
device|space-not-awaited|driver/space.rs|s/if !self\.waits_for_space\(\) \{/if true {/|a write waits for space where that is wanted
device|flush-not-awaited|dmz/block_device.rs|s/self\.driver\.when_there_is_space\(flush\)\.map/Result::<(), Status>::map(flush())/; s/map\(flush\(\)\)\(\|\(\)\| None\)/map(flush(), |()| None)/|a flush of a zoned volume waits for room where that is wanted
device|space-for-ever|driver/space.rs|s/self\.waits_for_space\.store\(false, Ordering::Relaxed\);//|a close ends that
device|host-overtaken|media/store.rs|s/if self\.held\.is_none\(\) \{/if true {/|nothing overtakes what the file did not take
device|host-unread|media/store.rs|s/self\.backlog\.lay_over\(offset, bytes\);//|what the file did not take is read from memory
device|host-half-drained|media/store.rs|s/self\.backlog\.took_first\(\);/self.backlog.took_first(); break;/|the file takes all of it before it takes anything else
device|host-promised|ssd/mod.rs|s/let drained = media\.drain\(\)\.map_err/let drained = Ok::<(), Held>(()).map_err/; s/use crate::media::\{FileMedia, Ticket\};/use crate::media::{FileMedia, Held, Ticket};/|a flush promises nothing that is in memory
device|host-admitted|ssd/hold.rs|s/drained\.map_err\(Held::status\)\?;//|a full host refuses changes before they begin
device|host-forgiven|backing.rs|s/\*unsynced = Some\(error\.raw_os_error\(\)\.unwrap_or\(0\)\);//|a failed synchronisation is told to everybody
device|host-barrier|media/backlog.rs|s/self\.steps\.push_back\(step\.into_owned\(\)\);/if step != Step::Sync { self.steps.push_back(step.into_owned()); }/|a synchronisation separates what waits before and after it
device|host-not-awaited|ssd/hold.rs|s/if !\*waits \{/if true {/|requests wait for room where that is wanted
device|log-uncovered|write_log/recorder.rs|s/while self\.gone < end\n\s*&& let/while let/|a write is in the log when a flush that covers it is answered
device|log-overtaken|write_log/recorder.rs|s/while self\.gone < end\n/if self.gone < end\n/|a flush brings all that it covers into the log
device|log-early|write_log/recorder.rs|s/self\.keeps == Keeps::Completed && self\.flushing\.is_empty\(\)/self.keeps == Keeps::Completed/|what completes while a flush is under way stands behind it
device|log-untrimmed|volume/backing.rs|s/log\.trimmed\(offset, len\);/let _ = log;/|trims are in the log
device|log-gap|write_log/recorder.rs|s/inner\.failed = Some\(error\);//|a log that could not be written is not continued
device|cache-unmarked|sums/mod.rs|s/self\.mark\(regions_of\(&range\)\)\?;//|nothing is written to a region before its dirty bit is durable
device|cache-mark-lost|sums/clean.rs|s/self\.store\.write_durable\(at, &block\)/self.store.write(at, \&block)/|a dirty bit is durable before the data
device|cache-cleaned-late|sums/clean.rs|s/if !state\.recent\.contains\(&region\) && /if /|a region that is written while it becomes clean stays dirty
device|cache-not-stored|sums/clean.rs|s/filter\(put\)/filter(|region| put(region) \|\| true)/|a region without its checksums on the device stays dirty
device|cache-not-remade|sums/open.rs|s/summed\.remake\(\*region\)\?/u64::from(*region == u64::MAX)/|checksums of dirty regions are made anew
device|cache-forgiven|sums/clean.rs|s/lock\(&self\.state\)\.failed = true;//|a failed synchronisation fails every later flush
device|cache-unread|sums/mod.rs|s/if differing\.is_none\(\) \{/if differing < Some(u64::MAX) {/|what differs from its checksum is an error
device|cache-half-written|sums/mod.rs|s/if read\.is_ok\(\) && cache_sum/if read.is_err() \&\& cache_sum/|what a failed write left is old, new or an error
device|cache-metadata|dmz/devices.rs|s/cache\.read_unjudged\(at, bytes\)/cache.read(at, bytes)/|metadata that rotted is taken from the other set
device|replay-outside|volume/replay.rs|s/if end <= bytes \{/if end <= u64::MAX {/|a log that is about more than the target has changes nothing
serve|worker-panic|nbd/workers.rs|s/queue\.broken = true;//|a connection hears of a thread that panicked
serve|worker-bell|nbd/workers.rs|s/(queue\.done\.push.*?)\n\s*self\.ring\(&mut queue\);/$1/s|a connection that sleeps hears of what is done
serve|worker-bytes|nbd/workers.rs|s/self\.bytes -= /let _ = /|bytes of replies that were taken are free again
serve|worker-over|nbd/workers.rs|s/queue\.over = true;//|the threads end with their connection
serve|wait-budget|nbd/connection/wait.rs|s/Some\(BUDGET_WAIT\)/None/|a connection that waits for the shared budget looks again
serve|memory-uncounted|memory.rs|s/shared\.free -= needed;//|shared memory is given out once
serve|memory-unfair|memory.rs|s/if is_next && shared/if shared/|shared memory is given out in the order of asking
serve|memory-promised|nbd/connection.rs|s/\(!self\.charge\(shared \+ reply\)\)\.then_some/(!self.charge(shared)).then_some/|a reply is asked for before it is made
serve|memory-writes|nbd/connection.rs|s/waiting \+ reply \+ payload > limits/waiting + reply > limits/|payloads that wait for a drive count
serve|idle-keeps|nbd/connection/wait.rs|s/self\.input\.shrink\(\);\n\s*self\.out\.shrink\(\);//|an idle connection has no memory
serve|wait-holds|nbd/connection.rs|s/self\.input\.shrink\(\);\n//|who waits for the shared budget holds nothing of it
serve|settle-late|nbd/connection.rs|s/self\.settle\(want\);/if want != Want::Input(28) { self.settle(want); }/|what was promised and is not needed is given back before a connection waits
serve|stall-unseen|nbd/connection/wait.rs|s/self\.progress\.elapsed\(\) < self\.registry\.limits\.stall/true/|who holds up memory that others wait for is closed
serve|half-closed|nbd/registry.rs|s/if Instant::now\(\) >= deadline \{/if false {/|a half-closed peer keeps nobody waiting
serve|enter-unlimited|nbd/registry.rs|s/all\.count\(\) >= limits\.connections/all.count() > limits.connections/|a connection too many is refused
serve|enter-peer|nbd/registry.rs|s/of_peer >= limits/of_peer > limits/|one client has not all connections
serve|handshakes-wait|nbd/registry.rs|s/oldest\.crowded = true;\n.*?\n//|a silent handshake gives way to a newer one
journal|hole-accepted|extents.rs|s/expect\(block != 0, "its journal has holes"\)\?;//; s/block > 0 && //|a journal has no holes
journal|used-twice|ring.rs|s/sorted\.is_sorted_by\(\|a, b\| a\.end\(\) <= b\.at\)/true || sorted.is_empty()/|no block is in a journal twice
journal|unwritten-extent|extents.rs|s/const WRITTEN_MAX: u16 = 32768/const WRITTEN_MAX: u16 = 65535/|an extent of a journal is written
journal|longer-than-file|jbd2.rs|s/expect\(whole\.bytes\(\) >= bytes, /expect(whole.bytes() > 0, /|a journal fits the file it lies in
journal|fast-is-log|jbd2.rs|s/is_fast \|\| says_fast/says_fast/|the file system says that there is a fast-commit area
journal|tail-anywhere|jbd2.rs|s/start == 0 \|\| \(first\.\.end\)\.contains\(&start\)/start < u32::MAX/|the tail lies in the log
journal|log-across-groups|xfs.rs|s/&& block \+ log_blocks <= u64::from\(group_blocks\)//|the log of an XFS lies in one group
journal|areas-apart|f2fs.rs|s/ && first \+ count == next//|the areas of an F2FS join
journal|gpt-unchecked|partitions.rs|s/expect\(crc32\(&entries\) == le32\(header, 88\), /expect(!entries.is_empty(), /|entries of a GPT have their checksum
journal|chain-back|partitions.rs|s/\*next > at && //; s/const CHAIN_MAX: usize = 32/const CHAIN_MAX: usize = 320/|a chain of partitions does not go back
journal|one-of-two|survey.rs|s/all\.len\(\) > 1/all.len() > 2/|of two file systems in one place neither is sure
journal|small-rounding|class.rs|s/extent\.end\(\)\.div_ceil\(PAGE_BYTES\)/(extent.end() \/ PAGE_BYTES)/|ranges are rounded outwards
journal|past-the-device|class.rs|s/\.min\(blocks\)//|a range ends on the device
journal|reads-unbounded|blocks.rs|s/self\.slots\.len\(\) >= READS_MAX/self.slots.len() >= usize::MAX/|a reading is bounded
journal|unsure-wins|table.rs|s/\(range\.confidence, range\.class\)/range.class/|the surer range counts
journal|not-reread|detector.rs|s/if !is_tail \|\| self\.survey\.is_some\(\) \{/if self.survey.is_some() {/|a write to what was read makes it stale
journal|tail-rereads|detector.rs|s/if !is_tail \|\| self\.survey\.is_some\(\) \{/if true {/|a moving tail is no reason to read
journal|race-with-reading|detector.rs|s/\|\| self\.survey\.as_ref\(\)\.is_some_and\(\|survey\| survey\.has_seen\(first, end\)\)//|a write while it reads makes it read again
journal|always-in-use|detector.rs|s/live\.is_quiet \|= quiet;/let _ = quiet;/|an empty journal that is not written is not in use
journal|never-woken|detector.rs|s/live\.is_quiet = false;/live.is_quiet = true;/|a journal that is used again is one again
journal|reach-lost|tail.rs|s/\(\*reach\)\.max\(ahead\(last, \*tail, bytes\) \+ 1\)/(*reach).max(1)/|what was written ahead of the tail is live
journal|reach-stays|tail.rs|s/reach\.saturating_sub\(ahead\(tail, old, bytes\)\)/reach.saturating_sub(1)/|what the tail has passed is dead
journal|empty-forgets|tail.rs|s/Position::Empty \{ written \} => \*written = true,/Position::Empty { .. } => {}/|what was written before the tail was known is live
journal|no-lap|sniff/trail.rs|s/ && self\.laps > 0//|blocks of a journal are a ring only when they came round
journal|any-order|sniff/trail.rs|s/sequence\.wrapping_sub\(last\) <= 1 && /sequence.wrapping_sub(last) <= u32::MAX \&\& /|transactions of a journal are numbered
journal|never-forgotten|sniff/mod.rs|s/now\.time\.saturating_sub\(self\.time\) > STALE/now.time < self.time/|a proposal that nothing confirms goes
journal|laps-unread|sniff/circular.rs|s/if is_whole \{ self\.laps\.saturating_add\(1\) \} else \{ 0 \}/self.laps + u32::from(is_whole || self.bytes > 0)/|a lap writes most of the ring, in order
journal|header-is-lap|sniff/circular.rs|s/self\.restart = Some\(\(at, end\)\);/self.lap(at); self.next = end;/|a journal header in front of a ring is no lap
journal|never-alone|sniff/circular.rs|s/take\(&mut self\.since_flush\) == 1/take(\&mut self.since_flush) > 0/|only a write that is alone between flushes is forced
volume|zone-two-writes|volume/zones/gate.rs|s/self\.log\.sent_to\(segment\)\.first\(\) == Some\(&id\)/true/|one batch of a zone is under way at a time
volume|zone-too-many|volume/zones/gate.rs|s/&& !\(begins && self\.is_leaving_zones\(id\)\)/\&\& (begins || !begins)/|a zone is begun when the one before is full or finished
volume|zone-rest|log/mod.rs|s/if rest < BATCH_MIN\.max\(unit\) \{ rest \} else \{ 0 \}/0/|a batch takes what is left where no other fits
volume|zone-not-reset|volume/zones/open.rs|s/backing\.reset\(zone\)\.err\(\)/Ok(()).err()/|free zones are empty after an opening
volume|zone-conv-roots|layout.rs|s/!self\.is_sequential\(LogSegmentId::new\(ROOT_ZONES\[0\]\)\)/!self.is_zoned()/|roots in conventional zones have slots
volume|zone-conv-reset|volume/log/trims.rs|s/if self\.layout\.is_sequential\(segment\) \{\n(\s+self\.forget)/if self.layout.is_zoned() {\n$1/|a conventional zone is trimmed, not reset
volume|resize-zone-held|volume/zones/gate.rs|s/held \|\| finishing/finishing/|no zone is begun while a label takes an active one
volume|resize-zone-left|volume/zones/gate.rs|s/self\.leave_segment\(Stream::User\);//|a label takes the active zone of a stream
volume|resize-stale-label|volume/recovery/mod.rs|s/filter\(\|at\| !labels\.contains\(at\)\)/filter(|_| false)/|an opening writes stale copies of the label anew
volume|zone-not-finished|volume/zones/open.rs|s/let result = backing\.finish\(zone\);/let result = Ok(());/|zones that nobody goes on writing are finished
volume|zone-left-unreset|volume/zones/open.rs|s/self\.trims\.again\(id, self\.now\);/let _ = id;/|a zone that an opening could not reset is reset later
volume|torn-resent|volume/zones/pointer.rs|s/Ok\(Some\(0\)\) => self/Ok(Some(_)) if io.blocks > 0 => self/|what a zone took of a write is not sent again
volume|torn-full|volume/zones/pointer.rs|s/\(first \+ io\.blocks == self\.segment_blocks\(\)\)\.then_some\(io\.blocks\)/None/|a write that filled its zone is not given up
volume|torn-unread|volume/zones/pointer.rs|s/if !same \{/if false {/|what lies before a write pointer is compared
volume|zone-fell-back|zones/open.rs|s/if found < expected \{/if found < expected.min(0) {/|a write pointer before what a checkpoint knows is told
volume|zone-offline|zones/open.rs|s/let may_hold = !clean && !give_up;/let may_hold = false;/|a zone that may hold the last batches is not given up silently
volume|zone-evacuated|volume/cleaner/mod.rs|s/ \|\| self\.segments\.has_leaving\(self\.now\)//|zones that can only be read are emptied
volume|offline-behind|volume/zones/gate.rs|s/self\.move_meta_soon\(\);//|a checkpoint makes up for what a zone took along that fails
volume|offline-map|volume/checkpoint/sweep.rs|s/self\.move_meta\(\);//|what the map has in a zone that failed is written anew
volume|moved-once|volume/checkpoint/commit.rs|s/if self\.is_moving_meta\(\) && self\.is_counted\(\)/if false/|.. by as many checkpoints as that takes
volume|runs-unbounded|volume/checkpoint/commit.rs|s/self\.is_full_of_runs\(\)/false/|runs that stay for what cannot be read do not fill the log
volume|runs-many|checkpoint/mod.rs|s/RUNS_HELD_MAX: u64 = 4 \*/RUNS_HELD_MAX: u64 = 8 */|.. nor become more than whoever reads a page can bear
volume|map-unlisted|volume/mod.rs|s/kept\.min\(u32_from\(RESERVE_LIST \/ 2\)\)/kept/|a map of more log segments than a root lists leaves some for the host
volume|reserve-listed|volume/mod.rs|s/listed\.min\(segments\.free_count\(\)\.saturating_sub\(kept\)\)/listed/|what the map may grow to and the cleaner needs is not the host's, however few of it a root lists
volume|write-too-long|volume/host.rs|s/REQUEST_BLOCKS_MAX\.min\(segment - segment\.div_ceil\(batch\)\)/REQUEST_BLOCKS_MAX/|.. also if a write is longer than a log segment
volume|bodies-unkept|checkpoint/room.rs|s/2 \* RUNS_IN_A_HURRY \* self\.body_of_segments\(\)/0/|what describes many log segments has room until a sweep makes some
volume|bodies-unpaced|volume/cleaner/pace.rs|s/ \+ self\.layout\.kept_for_bodies\(\) \/ 2//|.. and the cleaner goes ahead of that
volume|closed-unmoved|volume/checkpoint/capture.rs|s/ && !self\.is_moving_meta\(\)//|.. also when the volume is closed
volume|offline-untold|volume/inspect.rs|s/self\.segments\.of\(segment\)\.gone/false/|a check tells of blocks in offline zones
volume|given-up-untold|snapshots/share.rs|s/entry\.at == Location::LOST/entry.at.raw() == 0/|a check counts blocks that were given up
volume|lost-counted-twice|volume/zones/map.rs|s/self\.checkpoint\.set_exact\(\);//|a repair counts what recovery found, and whoever begins again does not
volume|lost-begun|volume/recovery/rebuild/pages.rs|s/\s+&& all\(\)\.any\(.*?known < live\)\)//s|a repair that was cut off before has given up what nothing counts any more
volume|zone-unreset-free|volume/log/trims.rs|s/if zoned \|\| !blocked => return/if !blocked => return/|a zone is not free before its reset, however short they are
volume|root-zone-same|volume/checkpoint/roots.rs|s/find\(\|other\| \*other != zone\)/find(|other| *other == zone)/|the zone with the newest root is not reset
volume|full-listed|volume/checkpoint/capture.rs|s/\.filter\(\|_\| state\.used < self\.segment_blocks\(\)\)//|a full log segment is not listed as open
volume|opening-unflushed|volume/recovery/mod.rs|s/backing\.flush\(\)\.map_err\(\|_\| MountError::Backing\("it was flushed"\)\)\?;//|what an opening reads is durable before it builds upon it
volume|frozen-held|volume/zones/gate.rs|s/self\.release\(&mut waiters, Err\(IoFailed::Error\)\);//|a write beside a resize that fails is answered
volume|frozen-wakes|volume/mod.rs|s/\.filter\(\|_\| self\.frozen\.is_none\(\)\)//|a frozen volume is not called again and again
volume|copy-unchecked|volume/host.rs|s/let is_copy = batch\.stream == Stream::Clean;/let is_copy = false;/|damaged data is an error while it moves
volume|feature-ungolden|../../format/src/volume/label.rs|s/pub const COMPAT_KNOWN: u64 = 0;/pub const COMPAT_KNOWN: u64 = 1;/|a feature bit has a golden image
volume|golden-changed|../../format/src/volume/kind.rs|s/Directory = 4,/Directory = 9,/|a golden image of an older day opens
volume|retries-none|retries.rs|s/if retry\.failures >= tries \{/if retry.failures >= 1 {/|a request that failed is sent again
volume|retries-endless|retries.rs|s/\(retry\.due, retry\.refused\) = \(None, false\);/retry.refused = false;/|a request is sent again once when it is due
volume|stall-never|volume/stall.rs|s/failing\.filter\(\|failing\| failing\.stalls\(self\.now\)\)/failing.filter(|_| false)/|who waits for a backing that fails is answered
volume|stall-silent|answers.rs|s/for tag in self\.requests\.give_up\(\) \{/for tag in self.requests.give_up().into_iter().take(0) {/|those that waited before the stall are answered as well
volume|stall-shortage|volume/stall.rs|s/\.chain\(self\.shortage\(\)\)//|a shortage while something fails is an error
volume|stall-stale|stall.rs|s/since <= \*at && now < \*at \+ PATIENCE/since <= since/|an error of long ago is no reason
volume|runs-freeze|volume/checkpoint/sweep.rs|s/self\.checkpoint\.fill_with_runs\(!unread\.is_empty\(\)\);/if unread.is_empty() { self.checkpoint.fill_with_runs(true); }/|checkpoints go on when the map can be read again
volume|failed-kept|volume/log/suspects.rs|s/self\.segments\.set_aside\(segment\);\n/self.segments.set_aside(segment); self.segments.of_mut(segment).pins += 1;\n/|a log segment that failed is used again
volume|strikes-forever|segments/mod.rs|s/if segment\.errors\.strikes >= STRIKES_MAX \{/if segment.errors.strikes >= 1 {/|a log segment is retired after three strikes
volume|retired-for-ever|segments/errors.rs|s/for id in std::mem::take\(&mut self\.retired\) \{/for id in self.retired.clone().into_iter().take(0) {/|a scrub has log segments that are retired tried once more
volume|cleaned-lost|volume/cleaner/moves.rs|s/if lost \{\n.*?\n\s*return;\n\s*\}/let _ = lost;/s|what the cleaner could not read stays where it is
volume|walk-unread|cleaner/walk.rs|s/self\.whole &= held != Held::Unread;/let _ = held;/|a walk that could not read the map does not know what is live
volume|walk-lost|cleaner/mod.rs|s/walk\.miss\(\);/let _ = walk;/|a walk that could not read a block does not empty its log segment
volume|walk-ended|cleaner/walk.rs|s/\(self\.next, self\.whole\) = \(None, false\);/self.next = None;/|a header that cannot be read is not the end of a log segment
volume|doubt-dead|volume/snapshots/share.rs|s/Held::Unread => self\.segments\.doubt\(self\.layout\.segment_of\(at\)\),/Held::Unread => self.lose(at),/|a block that a member may have is live
volume|doubt-forgotten|volume/snapshots/share.rs|s/Held::Unread => self\.segments\.doubt\(self\.layout\.segment_of\(at\)\),/Held::Unread => {}/|what counts in vain is found
volume|doubt-volatile|volume/checkpoint/capture.rs|s/doubtful: segment\.errors\.doubtful,/doubtful: false,/|what counts in vain is found after a restart
volume|doubt-early|volume/map/doubts.rs|s/self\.is_counted\(\) && self\.frozen/self.frozen/|no page is read before what recovery found counts
volume|unread-kept|volume/snapshots/delete.rs|s/member\.unread\.remove\(&page\);/let _ = \&kin;/|a deleted member goes when all of it could be read
volume|unread-skipped|volume/snapshots/delete.rs|s/self\.members\.of_mut\(slot\)\.unread\.insert\(page\);//|what a deleted member has alone is freed when it can be read again
volume|held-unanswered|volume/log/append.rs|s/self\.give_up_if_held\(id\);\n(\s*return;)/$1/|a write that is sent after the volume froze is answered
volume|cheap-unseen|volume/cleaner/victim.rs|s/greedy \|\| emptiest\.1\.live\(\) <= blocks \/ CHEAP/greedy/|nearly empty log segments are cleaned before old ones
volume|fill-damaged|volume/cleaner/fill.rs|s/checksum\(bytes\) != found\.crc/false/|a damaged block lies in no batch of the host
volume|fill-shared|volume/cleaner/fill.rs|s/if !takes \|\| !self\.members\.is_alone\(\) \{/if !takes {/|log segments of the host have nothing older where blocks may be shared
volume|fill-journal|volume/cleaner/fill.rs|s/matches!\(batch\.stream, Stream::User \| Stream::Hot\)/batch.stream.is_user()/|log segments of journals have nothing else
volume|fill-unwalked|../../format/src/volume/batch.rs|s/RecordList::Data\(list\) => \(list, &self\.moved\),/RecordList::Data(list) => (list, \&[]),/|blocks that fill padding are found when they have to move again
volume|fill-for-ever|volume/cleaner/fill.rs|s/pads && !short && !leaves && !self\.is_behind\(\) && !self\.holds_up\(\)/pads/|the host does not wait for blocks that wait for padding
volume|fill-holds-up|volume/cleaner/fill.rs|s/ && !self\.holds_up\(\)//|what waits for padding keeps no empty log segment
volume|undo-put-off|checkpoint/mod.rs|s/run\.swept = run\.swept\.min\(before\.1\);/let _ = \&run;/|runs are dropped oldest first, also after a checkpoint that came to nothing
volume|told-kept|map/loads.rs|s/self\.told\.remove\(&key\);\n(\s*\}\n\n\s*fn number)/$1/|what runs have of a page is not taken for what a later member has there
volume|label-active|volume/resize/labels.rs|s/Err\(why\) if self\.frozen\.is_none\(\) =>/Err(why) if false =>/|a zone of a label is active no longer when the next is begun
volume|label-circle|volume/zones/gate.rs|s/if self\.is_making_room\(\) \{/if false {/|a zone that waits for a label is none that the label waits for
volume|label-untold|volume/resize/labels.rs|s/(self\.with_label\(\|volume, work, _, at\| \{\n)(\s*if )/$1work.failing = None; $2/|who waits for a label is told until its zone is finished
volume|label-told-late|volume/resize/labels.rs|s/let since = self\.retries\.since\(self\.now\);/let since = self.now;/|.. and not anew with each copy that is begun again
volume|resize-at-rest|volume/resize/mod.rs|s/self\.hold_zones\(\);\n\s*self\.step_finishes\(\);/self.hold_zones();/|a resize goes on though nothing else happens
volume|resets-forgotten|segments/trims.rs|s/!self\.later\.is_empty\(\)/false/|zones that could not be reset are free later
volume|stall-outdated|volume/mod.rs|s/(self\.step_full_of_runs\(\);)/$1\n        self.step_stall();/; s/(all went on that can\.)\n\s*self\.step_stall\(\);/$1/|the host is told what is so when all went on that can
volume|chain-erased|recovery/replay.rs|s/\(!leads\(&one\)\)\.then_some\(one\.start\)/Some(one.start).filter(|_| !leads(\&one) || true)/|what does not count leads to what does
volume|rebuilt-leads|volume/recovery/rebuild/survey.rs|s/self\.zoned \|\| seen\.leads/self.zoned/|what an opening must not erase may be something that it left out
volume|packs-trimmed|volume/unmap.rs|s/let old = (self\.map\.set\(here\.in_map\(\), Entry::UNMAPPED\);)/$1/|what is trimmed lies where it is since its batch was packed
volume|packs-salvaged|volume/recovery/rebuild/pages.rs|s/\*counted \+= self\.layout\.quarters_of\(entry\.at\)/*counted += 4/|what headers tell counts by quarters
volume|checkpoint-stuck|volume/checkpoint/mod.rs|s/if self\.takeable\(Stream::Meta\) == 0 && self\.lacks_segments\(\) \{/if false \&\& self.lacks_segments() {/|a checkpoint that can get no log segment any more says so
volume|fill-asks|volume/cleaner/fill.rs|s/self\.look_who_holds\((.*?)\)/self.is_held($1).ok_or(())/|what fills padding asks for no page of the map
volume|packs-unheld|log/mod.rs|s/u32::from\(!inside\)/1/|what is in the header of a batch under way is read from memory
volume|checkpoint-later|volume/checkpoint/mod.rs|s/if self\.checkpoint\.is_running\(\) \{\n\s*break;\n\s*\}/break;/|a checkpoint that comes to nothing is followed by the next
volume|checkpoint-unasked|volume/mod.rs|s/ \|\| self\.checkpoint\.is_forgotten\(\)//|a checkpoint that is wanted late in a turn begins in it
volume|finish-once|volume/zones/gate.rs|s/let again = result\.is_err\(\) && /let again = false \&\& /|a zone that could not be finished is finished later
zoned|sleepers-by-chunk|queues.rs|s/filter_map\(over\)\.collect\(\);\s*self\.oldest_first\(chunks\)/filter_map(over).collect::<Vec<u32>>();\n        chunks/|.. also when those who slept a second fall asleep again
zoned|waiters-by-chunk|queues.rs|s/chunks\.sort_by_key\(.*?\);//|a zone that becomes free goes to the oldest request
zoned|flush-undrained|write_metadata.rs|s/let is_drained = .*?;/let is_drained = true;/|what stored metadata calls valid is on a device
zoned|flush-one-device|write_metadata.rs|s/if all && self\.ios\.is_unflushed\(device\)/if false \&\& all \&\& self.ios.is_unflushed(device)/|every device with data is flushed before the root record
zoned|flush-root-first|flush.rs|s/self\.phase = Phase::BlocksFlush\(set\);\s*Step::FlushDevices \{ all: set == SECONDARY \}/self.phase = Phase::Root(set); Step::WriteRoot(set)/|blocks of a set are durable before its root record
zoned|flush-in-place|flush.rs|s/self\.phase = Phase::Blocks\(SECONDARY\);\s*Step::WriteBlocks\(SECONDARY\)/self.phase = Phase::Blocks(PRIMARY); Step::WriteBlocks(PRIMARY)/|one set is whole while the other one is written
zoned|flush-same-generation|write_metadata.rs|s/self\.generation \+= 1;/self.generation += 0;/|each flush has a generation of its own
zoned|flush-fua|requests.rs|s/if request\.fua && request\.result\.is_ok\(\)/if request.fua \&\& request.result.is_err()/|FUA makes map and validity durable
zoned|flush-kernel-fua|requests.rs|s/ && !self\.options\.kernel_flush \{/ {/|the kernel leaves FUA to the device
zoned|flush-host-runs|stall.rs|s/if !self\.flush\.holds_host\(\) \|\| self\.frozen \{/if !self.flush.holds_host() || self.now >= Nanos::ZERO {/|no part begins while metadata is flushed
zoned|flush-commit|copy.rs|s/Stage::Copied if self\.flush\.holds_reclaim\(\)/Stage::Copied if false/|no reclaim commits while metadata is flushed
zoned|given-back-early|map.rs|s/if self\.options\.kernel_flush \{/if true {/|a zone is not used while stored metadata points to it
zoned|older-set|roots.rs|s/generation\(1\) > generation\(0\)/generation(1) >= generation(0)/|of two sets of one generation the first is whole
zoned|sets-differ|metadata_sets.rs|s/write\(backing, 0, at \+ block, new\)\?;//|opening makes both sets equal
zoned|not-emptied|mount.rs|s/&& !zone\.is_mapped\(\)/\&\& !zone.is_mapped() \&\& zone.weight > 0/|opening resets zones that no chunk has
zoned|map-twice|load.rs|s/\} else if zones\.get\(zone\)\.is_mapped\(\) \{/} else if zones.get(zone).is_mapped() \&\& chunk == u32::MAX {/|no two chunks have one zone
zoned|lost-kept|load.rs|s/lost\.written\.\.geometry\.zone_blocks\(\), false/geometry.zone_blocks()..geometry.zone_blocks(), false/|blocks behind the write pointer are lost
zoned|overlap|queues.rs|s/\(self\.kind != Kind::Read \|\| other\.kind != Kind::Read\)/(self.kind == other.kind \&\& self.kind == Kind::Discard)/|requests that overlap go one after the other
zoned|no-terminate|foreground.rs|s/self\.zones\.get_mut\(zone\)\.terminate = true;//|a request ends the reclaim of its zone
zoned|locked-used|foreground.rs|s/if self\.zones\.get\(zone\)\.locked && !self\.frozen/if self.zones.get(zone).locked \&\& self.frozen/|no request uses a zone that is reclaimed
zoned|old-copy|foreground.rs|s/filter\(\|zone\| \*zone != target\)/filter(|zone| *zone != target \&\& Some(*zone) != entry.data)/|what goes to the buffer is no longer valid in the data zone
zoned|old-buffer|foreground.rs|s/filter\(\|zone\| \*zone != target\)/filter(|zone| *zone != target \&\& Some(*zone) != entry.buffer)/|what goes to the data zone is no longer valid in the buffer
zoned|no-lru|foreground.rs|s/self\.zones\.rotate\(zone\);//|a zone that is used is reclaimed last
zoned|buffer-kept|foreground.rs|s/self\.zones\.get\(\*zone\)\.weight == 0;/self.zones.get(*zone).weight == u32::MAX;/|an empty buffer zone is freed at once
zoned|data-kept|foreground.rs|s/if idle && buffer\.is_none\(\) && weight == 0/if idle \&\& buffer.is_none() \&\& weight == u32::MAX/|an empty data zone is freed
zoned|idle-any|foreground.rs|s/self\.note_access\(.*?\);//|a device whose data zones are used is not idle
zoned|one-is-none|reclaim.rs|s/if free <= 1/if free == 0/|one free zone is as good as none
zoned|low-percent|reclaim.rs|s/percent <= LOW_PERCENT/percent < LOW_PERCENT/|reclaim runs at 30 %
zoned|throttle|reclaim.rs|s/if urgent \{ 100 \} else \{ 75\.min\(100 - percent \/ 2\) \}/if urgent { 100 } else { 100 - percent \/ 2 }/|copying takes 75 % of the time
zoned|zeroes-rest|job.rs|s/if cause == Sent::ZeroFill \{\s*self\.stage = Stage::Ready;\s*return;\s*\}\s*self\.run\.start \+= blocks;/if cause != Sent::ZeroFill { self.run.start += blocks; }/|zeroes are written without a rest
zoned|reserved-first|reclaim.rs|s/if self\.zones\.reserved\(\) == 0 \{/if self.zones.reserved() == u32::MAX {/|without a reserved zone a buffered sequential zone is taken
zoned|pinned-moved|reclaim.rs|s/!self\.is_pinned\(\*zone\) && //|reclaim leaves the journal alone
zoned|wrong-action|reclaim.rs|s/run\.start >= zone\.wp/run.start + 4 >= zone.wp/|a buffer is appended only behind the write pointer
zoned|waits-for-ever|reclaim.rs|s/self\.ios\.is_quiet\(\)\s*&& self\.held/false \&\& self.held/|where nothing can be freed writes end
zoned|looks-again|reclaim.rs|s/let again = self\.should_reclaim\(worker\);/let again = true;/|after a reclaim only an allocation makes a worker look again
zoned|fifo|zones.rs|s/self\.free_cache\.push_back\(id\)/self.free_cache.push_front(id)/|free zones are taken oldest first
zoned|aborted-counted|copy.rs|s/self\.stats\.recount\(device, \(cause, Sent::AbortedValid\), copied\);//|what was thrown away is counted as that
zoned|aborted-leaked|copy.rs|s/if action == Action::RndData \{/if action == Action::Empty {/|the target of an aborted copy is freed
zoned|holes|copy.rs|s/if is_sequential && wp < run\.start/if false \&\& is_sequential \&\& wp < run.start/|holes are filled
zoned|aborts-at-end|copy.rs|s/if !range\.is_empty\(\) && \(unwanted/if (unwanted/|a run up to the end is not aborted
zoned|journal-ended|copy.rs|s/terminate && !forced;/terminate;/|moving the journal out of a sequential zone is not aborted
zoned|not-redirected|foreground.rs|s/if result\.is_ok\(\) \{\n(\s*self\.written)/if true {\n$1/|what a zone did not take is not valid there
zoned|bad-zone-freed|map.rs|s/Condition::Suspect => self\.rest_zone\(id\),/Condition::Suspect => self.zone_free(id),/|a zone that failed is reset before it is used again
zoned|bad-zone-kept|faults.rs|s/self\.misplaced_journal\(\)\.into_iter\(\)\.chain\(ailing\)/self.misplaced_journal().into_iter().chain(ailing.take(0))/|what lies in a zone out of service moves to the cache
zoned|lost-opened|mount.rs|s/recovery\.first_lost\.filter\(\|_\| !options\.give_up_lost\)/recovery.first_lost.filter(|_| false)/|a volume that lost data is refused
zoned|set-half|journal.rs|s/2 \* chunks <= self\.zones\.conventional\(\)\.into\(\)/2 * chunks <= u64::MAX/|pinned chunks leave half of the cache
zoned|set-kept|journal.rs|s/self\.pinned\.retain\(\|chunk\| touched\.contains\(chunk\)\);//|a chunk that the journal has left is no longer pinned
zoned|set-first|journal.rs|s/\(Placement::Pinned, _\) => \{\}/(Placement::Pinned, _) => touched.truncate(1),/|every chunk of the journal that is in the cache is pinned when it is found
zoned|set-quarter|journal.rs|s/!is_little\(log \+ hot\) \|\| //|the journal zone set takes at most a quarter of all zones
zoned|set-grows|journal_set.rs|s/u32_from\(self\.map\.zones\(\)\.len\(\)\) < self\.zones_max/true/|reclaim can always free a zone beside the journal zone set
zoned|set-hasty|journal.rs|s/waits \{ QUIET \}/waits { Nanos::ZERO }/|an opened volume waits for its journal to be found
zoned|set-early|append.rs|s/self\.release\(id\);/self.free_now(id);/|a zone of the journal is not reset while stored metadata points to it
zoned|set-read-reset|append.rs|s/&& zone\.active == 0 && zone\.weight == 0/\&\& zone.weight == 0/|a zone of the journal is not reset while it is used
zoned|set-twice|append.rs|s/self\.invalidate\(data, blocks\.clone\(\)\);//|what was appended is no longer valid in its chunk
zoned|set-old|append.rs|s/if let Some\(old\) = self\.set\.map\.put\(lba, spot\) \{\s*self\.drop_spot\(old\);/if let Some((old, _)) = self.set.map.put(lba, spot) {\n                self.close_set_zone(old);/|what was appended is no longer valid where it was
zoned|set-failed|append.rs|s/if part\.appended_at\.take\(\)\.is_some\(\) \{/if false {/|what a zone of the journal did not take begins again
zoned|set-forgets|foreground.rs|s/self\.forget\(part\);//|what goes to its chunk lies in the journal zone set no more
zoned|set-limit|rewrite.rs|s/most == 0 \|\| u32_from\(behind\.len\(\)\) < most \|\|/most == 0 ||/|only what is left behind at the limit moves
zoned|set-strict|journal_set.rs|s/\(2 \* log\)\.min\(self\.zones_max - hot - 1\)\.max\(log\)/log/|a ring out of step is not copied
zoned|rest-never|rest.rs|s/self\.fits && /false \&\& /|a journal rests in the cache while that has room
zoned|rest-large|rest.rs|s/may && CACHE_PART \* chunks <= cache/may \&\& chunks > 0/|a journal that rests takes a tenth of the cache at most
zoned|rest-slow|rest.rs|s/ && WRITTEN_PART \* self\.journal >= self\.all/ \&\& self.journal <= self.all/|a ring that is slow is appended
zoned|rest-late|rest.rs|s/self\.gave_out = true;//|a journal leaves a cache that gave out
zoned|rest-once|rest.rs|s/self\.gave_out = false;//|a journal rests again when half of the cache is free
zoned|rest-copied|pinned.rs|s/ \|\| self\.holds_journal\(chunk\)//|what is left of a journal that rested is not copied
zoned|rest-kept|append.rs|s/self\.unpin_if_left\(part\.chunk\);//|a chunk that a journal has left is the cache's again
zoned|rest-before|journal.rs|s/touched\.retain\(\|chunk\| self\.holds_journal\(\*chunk\)\);/touched.clear();/|blocks from before the journal was found are not copied
zoned|rest-moved|pinned.rs|s/!self\.zones\.get\(zone\)\.is_sequential\(\) && !self\.zones\.get\(zone\)\.locked/!self.zones.get(zone).locked/|a chunk in a sequential zone is not rested in
zoned|rest-sleeps|pinned.rs|s/self\.zones\.room\(0\)\.0 > 0/true/|a journal that may rest does not wait for a zone
zoned|rest-waits|pinned.rs|s/ && !self\.zones\.get\(zone\)\.locked//|a journal that may rest does not wait for a reclaim of its chunk
zoned|set-left|journal_set.rs|s/emptied == Some\(zone\) \|\|/false \&\& emptied.is_some() ||/|what is left behind at the limit moves to the head
zoned|set-unflushed|write_metadata.rs|s/blocks\.extend\(journal\.into_iter\(\)/blocks.extend(journal.into_iter().take(0)/|the journal block map is flushed with the rest
zoned|set-version|write_metadata.rs|s/Some\(Content \{ blocks, journal_blocks, sums \}\)/Some(Content { blocks, journal_blocks: 0, sums })/|a volume with a journal block map says so
zoned|set-format|block_map.rs|s/self\.zones\.is_empty\(\) && self\.slots > 0/self.zones.is_empty() \&\& self.slots > u32::MAX - 1/|a volume without a journal zone set has the format of the kernel
zoned|set-lost|load.rs|s/find_blocks\(geometry, layout, meta, map\)\.map_err\(MountError::Journal\)\?;//|the journal block map is found again
zoned|foreign-copy|mount.rs|s/options\.give_up_lost && recovery\.first_lost\.is_none\(\)/options.give_up_lost/|a device that may be of another volume is not written to
zoned|retry-never|volume.rs|s/_ => Some\(TRIES_FEW\),/_ => Some(1),/|a request that failed is sent again
zoned|retry-freezes|volume.rs|s/\(Purpose::Flush, _\) => None,/(Purpose::Flush, _) => Some(TRIES_FEW),/|metadata is sent until it is written
zoned|retry-flush|volume.rs|s/if \*covers \|\| self\.ios\.may_lose\(io\.device\) => \{/if false => {/|a failed flush of written data is not sent again
zoned|stall-waits|stall.rs|s/self\.fail_changes\(why\);//|whoever waits for metadata that cannot be written is told
zoned|stall-reads|stall.rs|s/\} else if self\.retries\.is_empty\(\) \{/} else if self.frozen || self.now >= Nanos::ZERO {/|reads pass a flush whose writes fail
zoned|failed-buffer|foreground.rs|s/zone\.active \+= 1;\n(\s*part\.target)/$1/; s/\.filter\(is_idle\)//|a buffer that is written to is not freed
zoned|suspect-kept|faults.rs|s/self\.ask_for_reset\(zone\);/let _ = zone;/|a zone that failed is used again
zoned|barred-forever|quarantine.rs|s/self\.barred\.retain\(\|\(_, due\)\| \*due > now\);/let _ = now;/|what could not be copied is tried again
zoned|sums-unread|metadata_sets.rs|s/here\.filter\(\|here\| checksum\(here\) == sum\)/here/|a block that is not as its checksum says does not count
zoned|sums-unhealed|metadata_sets.rs|s/here\.or_else\(\|\| found\.block\(backing, block, sum\)\)/here/|a damaged block comes from the other set
zoned|sums-stale|sums.rs|s/changed\.insert\(block \/ DMZ_BLOCK_SUMS\);//|checksums are written with their blocks
zoned|sums-opened|mount.rs|s/chosen\.lost\.first\(\)\.copied\(\)\.filter\(\|_\| !options\.give_up_lost\)/chosen.lost.first().copied().filter(|_| false)/|metadata that is damaged in both sets is refused
zoned|twice-served|foreground.rs|s/self\.damaged\.contains\(&part\.chunk\)/false/|a chunk that contradicts itself is an error
sim|remap-asked|drive/run.rs|s/\.is_some_and\(\|remaps\| remaps\.writes\) && !from\.moves/.is_some_and(|remaps| remaps.writes) \&\& from.moves/|a host whose drive has no remaps writes, but for moves
sim|remaps-dropped|gathered.rs|s/return Err\(SimError::TraceRemaps \{ path, remaps: meta\.remaps \}\);/let _ = path;/|remaps that a volume does not take are refused
sim|move-kept|source.rs|s/if record\.flags\.has\(onefold_trace::Flags::MOVE\) \{/if record.len == 0 {/|a host that moves by writing trims the source
sim|windows-without-remaps|series.rs|s/host_remap_pages: remap - remap_before/host_remap_pages: remap_before/|a window counts the pages that were remapped in it
sim|flight-order|in_flight.rs|s/\(winner\.min\(\*loser\), winner\.max\(\*loser\)\)/if at > 1 { (winner.min(*loser), winner.max(*loser)) } else { (winner, *loser) }/|the earliest of the requests in flight comes next
sim|flight-moved|in_flight.rs|s/let less = \(self\.earliest - self\.base\) << self\.bits;/let less = 0;/|places move with the time that they count from
sim|span-window|at_once.rs|s/mark\.min\(watch\.next\(\)\)/watch.next()/|a span of requests ends where a window or the warm-up does
sim|remap-told|at_once.rs|s/load\.source\.contents\(\);\n//|a remap takes nothing of what is told of a write
sim|histogram-step|histogram.rs|s/bucket - doublings \* STEPS \+ 1/bucket - doublings * STEPS/|a quantile is the end of its bucket
sim|weights-ignored|at_once.rs|s/\(time, share\) < \(first, least\)/(time, 0) < (first, least.min(0))/|turns of tenants that are ready go by weight
sim|change-overtakes|stack/joint.rs|s/behind \|\| (self\.under_way)/$1/|no change overtakes one that waits
sim|retry-overtakes|stack/mod.rs|s/                changes &= !waiting\.is_change;\n//|behind a change that is refused again no other is taken
sim|cpu-idle|events.rs|s/        self\.cpu_until = now;\n//|requests wait for the CPU of the host
sim|depth-ignored|stack/joint.rs|s/behind \|\| self\.under_way\(\) - self\.waiting\.len\(\) > caps\.requests_max/behind/|no more requests are under way than a layer takes
sim|end-unsent|events.rs|s/                    self\.stack\.finish\(self\.clock\)\?;\n//|what waits at the end is sent
sim|bytes-forgotten|stack/port.rs|s/        if len > 0 \{\n/        if len > 4095 {\n/|a layer reads again what it wrote
sim|arrival-early|events.rs|s/\.max\(self\.clock\);\n/;\n/|what waited for a request to end arrives then
sim|delay-untold|stack/joint.rs|s/request\.delay = request\.delay\.max\(done\.delay\);//|a request tells the worst delay of its parts
sim|short-paced|stack/joint.rs|s/ns - \(layer\.short_ns\(now\) - short\)/ns/|time without free log segments is no pacing
sim|step-alone|stack/mod.rs|s/went_on \|= self\.settle\(layer, \*done, now\)\?/went_on \&= self.settle(layer, *done, now)?/|a write below a block is submitted when its block was read
sim|left-out-untold|outcome.rs|s/let skipped = .*?;/let skipped = trace.skipped;/s|requests that are left out are counted
sim|changes-forgotten|remaps.rs|s/self\.list\.retain\(\|change\| change\.done > now\);/self.list.clear();/|a remap waits for changes that came long before
sim|remap-source-early|remaps.rs|s/firsts\.into_iter\(\)\.any\(meets\)/meets(firsts[0])/|a remap waits for its source as well
ssd|copies-served-twice|../../ftl/src/contents.rs|s/if self\.scope == DedupScope::Reads\n\s*&& let/if self.scope == DedupScope::Writes\n            \&\& let/|of two copies of one read the second is programmed
ssd|copies-repaired|../../ftl/src/contents.rs|s/if self\.recent\.contains\(lpn\)/if self.recent.contains(u32::MAX)/|a repaired copy gets a page of its own
ssd|copies-of-moved|../../ftl/src/contents.rs|s/self\.index\.forget\(slot\);\n\s*self\.copied\.insert\(slot\.raw\(\)\);/self.index.forget(slot);/|the old place of what moved takes copies
ssd|copies-reread|../../ftl/src/contents.rs|s/if let Some\(slot\) = slot \{\n\s*self\.copied\.clear\(slot\.raw\(\)\);/if let Some(slot) = slot {\n            let _ = slot;/|a place that is read again may be under repair
ssd|copies-written|../../ftl/src/contents.rs|s/if self\.scope\.has_writes\(\)/if self.scope != DedupScope::Writes || self.scope.has_writes()/|with scope reads what was written is no source
ssd|copies-superblock|dedup.rs|s/\(!has_superblock\(data\)\)/(!has_superblock(\&[]))/|superblocks of file systems stay alone on their pages
ssd|copies-unverified|../../ftl/src/remap/dedup.rs|s/\(intact && stored == data, grant\.done\)/(intact, grant.done)/|a hit of a weak hash is compared
ssd|copies-staged|../../ftl/src/staging.rs|s/contents\.forget\(slot\);/let _ = contents;/|a unit that is replaced in its staged page is no source of what it held
ssd|zeroes-kept|dedup.rs|s/let done = ftl\.write_zeroes\(at, unit\.lpn\)\?;/let done = at.ready;/|zeroes replace what a unit held
sim|edges-unread|request.rs|s/ && self\.outstanding == 0//|edges are there before they are written
sim|state-places|in_flight.rs|s/ each \{ losers \} but \{ bits, depth \}/ but { losers, bits, depth }/|places of a closed loop belong to the state of a run
sim|state-series|series.rs|s/\{ window, next, start, windows \} but \{ asked \}/{ window, next, start } but { asked, windows }/|so do windows of the series
sim|state-passes|tenant.rs|s/self\.passed = self\.issued;//|a run goes on in the pass that it was in
sim|state-told|source.rs|s/drop\(contents\.drain\(.*?\)\);//|what a trace told of writes that were issued is over
sim|state-unsummed|checkpoint.rs|s/if onefold_format::checksum\(&frame\) != u32::from_le_bytes\(sum\)/if frame.len() > 2 * BLOCK_MAX/|damage of a state is noticed
sim|state-of-another|checkpoint.rs|s/"config": setup\.config\.to_json\(\),//|a state of another configuration is refused
sim|state-cpu|at_once.rs|s/\*began_cpu_s = thread_cpu_s\(\) - cpu_s;/let _ = (began_cpu_s, cpu_s);/|CPU time of the parts of a run adds up
sqlite|small-cloned|connection.rs|s/&& view\.written\(\)\.is_of_small_commits\(\)/\&\& false/|small commits that are synced one by one are written
sqlite|pairs-unseen|ffi/database.rs|s/view\.follow\(salts\);/let _ = (view, salts);/|all connections learn that a WAL is paired
sqlite|pairs-same-header|wal.rs|s/self\.known\.filter\(\|known\| known\.salts == salts\)/self.known.filter(|_| false)/|a header that is written again keeps its layout
sqlite|pages-uncommitted|wal.rs|s/self\.pages\.truncate\(index\(committed\)\);/let _ = committed;/|pages of frames that were rolled back are forgotten
sqlite|pages-kept|wal.rs|s/self\.pages\.clear\(\);//|pages of frames belong to one header
sqlite|growth-kept|wal.rs|s/self\.truncate\(before\)\?;\n(\s*\})/$1/|a file that cannot grow ahead is as long as it was
sqlite|header-held|device.rs|s/let ends = state\.is_commit && at <= state\.last_header_at;/let ends = state.is_commit \&\& at < u64::MIN;/|the header of a commit that is written again is not held back
sqlite|marker-stock|header.rs|s/const EMPTY: u32 = 0x4f46_5730;/const EMPTY: u32 = 3_007_000;/|SQLite without the extension refuses an empty aligned WAL
sqlite|marker-gone|wal.rs|s/return Self::create\(medium\);/return medium.truncate(0);/|a truncation leaves the header of an aligned WAL
sqlite|shared-memory|ffi/database.rs|s/if lock\(&self\.shared\)\.wal\.is_none\(\) \{/if !lock(\&self.shared).to_string().is_empty() {/|the shared memory of an aligned WAL is not that of a stock one
sqlite|live-ignored|connection.rs|s/Kind::Nothing if facts\.is_stock_live => stock\(Stock::InUse\),//|a WAL that is in use without the extension stays stock
sqlite|live-aligned|connection.rs|s/Kind::Aligned\(_\) \| Kind::Empty if facts\.is_stock_live => Err\(Code::BUSY\),//|nobody begins on an aligned WAL while a connection without the extension lives
sqlite|psow-ignored|connection.rs|s/Kind::Nothing if !facts\.is_powersafe => stock\(Stock::NotPowersafe\),//|without powersafe overwrite the layout is that of SQLite
sqlite|bytes-unverified|checkpoint.rs|s/\(self\.read_frame, bytes == self\.read_bytes\)/(self.read_frame, true)/|only the bytes of the frame are cloned
sqlite|frame-unverified|checkpoint.rs|s/self\.frame \+ within == frame/self.frame + within <= frame/|a page that came with a run came from the frame that SQLite reads
sqlite|ahead-oldest|checkpoint.rs|s/u32::MAX - frame\)/*frame)/|what is cloned ahead is the newest frame of its page
sqlite|ahead-unsafe|checkpoint.rs|s/let frames = bounds\.copied_frames\.\.bounds\.safe_frames;/let frames = bounds.copied_frames..bounds.safe_frames.max(6);/|what is cloned ahead may be copied
sqlite|group-ends|checkpoint.rs|s/\*\*ahead == expected\n\s*&& self.*?\* self\.layout\.page_bytes\(\)/**ahead == expected/s|a run ends with its group
sqlite|clone-failed|ffi/database.rs|s/(connection\.note_refused\(error\);\n\s*)false/$1true/|a page that cannot be cloned is written
sqlite|device-commit-held|device.rs|s/if ends \{ self\.settle\(\) \}/if ends \&\& at == 0 { self.settle() }/|a commit on a device writes what was held back
sqlite|device-held-unseen|device.rs|s/bytes \} in held \{/bytes } in held.into_iter().take(0) {/|what is held back is read
sqlite|device-sync-held|device.rs|s/self\.settle\(\)\?;\n(\s*self\.blocks\.sync)/$1/|a sync of a device writes what was held back
sqlite|device-size|device.rs|s/if bytes > self\.database_bytes_max\(\) \{/if bytes > u64::MAX - 1 {/|a database does not grow beyond its device
sqlite|device-label|device.rs|s/self\.blocks\.write\(&label\.encode\(\), 0\)\.map_err\(\|error\| write_code\(&error\)\)\?;//|the size of a database is in its label
sqlite|device-unread|device.rs|s/if found == content \{/if found.len() == content.len() {/|a remap counts once its first page was read
sqlite|device-twins|device.rs|s/if !blocks\.is_equal\(twins\)\? \{/if !blocks.is_equal(twins)? \&\& label.id == 0 {/|a control export of another device is found
sqlite|device-wal-kept|device.rs|s/(\(state\.part, state\.run\) = \(None, None\);\n\s*)self\.blocks\.write\(&empty_wal\(\), WAL_AT\)\?;/$1/|a WAL that is deleted is not replayed
sqlite|ahead-first|checkpoint.rs|s/at \+= index\(pages\);/at += 1;/|runs that go ahead together do not overlap
sqlite|commit-only|recover.rs|s/if header::is_commit\(&head\)/if header::page_number(\&head) > 0/|a recovery ends with a commit
sqlite|chain-only|header.rs|s/\(belongs && after\.is_at\(frame, 16\)\)/belongs/|a recovery follows the checksums
TABLE
}

if [ "${1:-}" = --check ]; then
  status=0
  while IFS='|' read -r crate name file rest; do
    source=crates/$crate/src/$file
    if perl -0pe "${rest%"|${rest##*|}"}" "$source" | cmp -s - "$source"; then
      echo "mutants: $name does not apply to $source any more" >&2
      status=2
    fi
  done < <(mutants)
  exit $status
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r Cargo.toml Cargo.lock crates docs examples schemas studies xtask presets traces "$work"
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$work/target}
export ONEFOLD_SEEDS=${ONEFOLD_SEEDS:-1500}
export RUST_BACKTRACE=0

# The tests of a crate that are to notice.
tests() {
  local chosen seeds=$ONEFOLD_SEEDS
  case "$1" in
    ftl) chosen=(--lib --test ftl) ;;
    ssd) chosen=(--lib --test ssd) ;;
    buffer) chosen=(--lib --test buffer) ;;
    study) chosen=(--lib --test study) ;;
    volume) chosen=(--test volume) ;;
    modes) chosen=(--test modes) ;;
    journal) chosen=(--test journal) ;;
    # Histories on a file take longer than those in memory.
    device) chosen=(--lib --test device) seeds=60 ;;
    serve) chosen=(--lib --test serve) ;;
    zoned) chosen=(--test zoned) ;;
    sim) chosen=(--lib --test sim) ;;
    sqlite) chosen=(--lib --test sqlite) ;;
  esac
  chosen=(--offline -q -p "onefold-$1" "${chosen[@]}")
  # Only the tests have a time limit: a mutant may never end, the compiler does.
  (cd "$work" && cargo test "${chosen[@]}" --no-run && ONEFOLD_SEEDS=$seeds timeout 900 cargo test "${chosen[@]}" --no-fail-fast)
}

status=0
checked=
while IFS='|' read -r crate name file rest; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* && " $* " != *" $crate "* ]]; then continue; fi
  if [ "$checked" != "$crate" ]; then
    if ! tests "$crate" >"$work/log" 2>&1; then
      tail -20 "$work/log" >&2
      echo "mutants: the tests of $crate fail without any mutant" >&2
      exit 2
    fi
    checked=$crate
  fi
  source=$work/crates/$crate/src/$file
  cp "$source" "$work/kept"
  # Expressions contain `|` as well; what they break is after the last one.
  what=${rest##*|}
  perl -0pi -e "${rest%"|$what"}" "$source"
  if cmp -s "$source" "$work/kept"; then
    result='does not apply'
    status=2
  elif tests "$crate" >"$work/log" 2>&1; then
    result=SURVIVED
    [ $status = 2 ] || status=1
  elif grep -q '^error: could not compile\|^error\[' "$work/log"; then
    result='does not compile'
    status=2
  else
    failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p; s/^    \([a-z0-9_:]*\)$/\1/p' "$work/log" \
      | sed 's/.*:://' | sort -u | paste -sd, -)
    result="killed by ${failed:-a time limit}"
  fi
  printf '%-6s %-20s %-60s %s\n' "$crate" "$name" "$what" "$result"
  cp "$work/kept" "$source"
done < <(mutants)
exit $status
