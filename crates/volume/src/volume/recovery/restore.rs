//! Taking over what a root describes, and what the batches behind it changed.

use std::collections::BTreeMap;

use onefold_format::checksum;
use onefold_format::volume::{
    BlockError, Body, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryPlace, Member, RunBlock,
    RunEntry, RunIndexBlock, SegmentEntry, SegmentState,
};
use onefold_units::Location;
use onefold_units::convert::{index, u64_from};

use crate::backing::{Backing, damaged, fetch_each, locations};
use crate::checkpoint::{Checkpoint, Restored};
use crate::error::MountError;
use crate::layout::Layout;
use crate::log::flush::Flushes;
use crate::log::{Log, Stream};
use crate::map::Map;
use crate::map::runs::{Run, Runs};
use crate::recovery::Recovery;
use crate::recovery::replay::{Candidate, Overlay, Replay, Written};
use crate::segments::{Errors, Segment, Segments, fit};
use crate::snapshots::{MemberState, Members};
use crate::volume::Volume;

/// Where batches behind the root may lie.
pub(crate) fn candidates(body: &Body, layout: &Layout) -> Vec<Candidate> {
    let end = layout.geometry().segment_blocks;
    let open = body.open.iter().filter_map(|open| {
        let epoch = body.segments.get(open.segment.index())?.epoch;
        let from = open.next;
        Some(Candidate { segment: open.segment, from, end, epoch_min: epoch, epoch_max: epoch })
    });
    let listed = body.reserve.iter().map(|segment| Candidate {
        segment: *segment,
        from: 0,
        end,
        epoch_min: body.next_epoch,
        epoch_max: u64::MAX,
    });
    let exists = |candidate: &Candidate| candidate.segment.raw() < layout.segments();
    open.chain(listed).filter(exists).collect()
}

impl Volume {
    /// Takes over what the newest root describes.
    pub(crate) fn restore(
        &mut self,
        backing: &mut dyn Backing,
        body: &Body,
        body_blocks: Vec<Location>,
        generation: u64,
    ) -> Result<(), MountError> {
        self.restore_members_of(body)?;
        let mut made = body_blocks.clone();
        self.restore_directories(backing, &mut made)?;
        let mut runs = Runs { list: Vec::new(), next_number: body.next_run };
        runs.list = read_runs(backing, &body.runs, &self.label.uuid)?;
        made.extend(runs.list.iter().flat_map(|run| &run.blocks));
        let mut uncounted = pages_of(backing, &runs, &self.label.uuid)?;
        uncounted.retain(|page| *page < self.map.pages());
        if !runs.list.is_empty() {
            // Which pages have records is known when they are read.
            for slot in self.members.slots().collect::<Vec<_>>() {
                self.map.keys_of(slot).for_each(|key| self.map.mark_stale(key, body.next_run));
            }
        }
        let table = body.segments.iter().map(|entry| Segment {
            state: match entry.state {
                // One that was retired is tried once more (`crate::volume::log::suspects`, invariant 3).
                SegmentState::Open | SegmentState::Suspect => SegmentState::Closed,
                SegmentState::Prefree => SegmentState::Free,
                other => other,
            },
            stream: Stream::from_code(entry.stream).unwrap_or(Stream::User),
            // What the root itself points to is counted below.
            quarters: self.live_data_of(entry),
            epoch: entry.epoch,
            pins: 0,
            listed: false,
            errors: Errors {
                doubtful: entry.doubtful,
                ..if entry.state == SegmentState::Suspect { Errors::RETIRED } else { Errors::NONE }
            },
            leaving: false,
            gone: false,
            // A lap begins (`crate::log::journal`, invariant 4).
            mark: 0,
        });
        let mut table: Vec<_> = table.collect();
        // The size may have changed since (`crate::resize`, invariant 1).
        fit(&mut table, self.layout.segments(), self.layout.fixed());
        self.segments = Segments::restore(table, body.next_epoch);
        // Members have some of it in common.
        made.sort_unstable();
        made.dedup();
        for at in made {
            self.gain(at);
        }
        let restored = Restored { generation, runs, body: body_blocks };
        self.checkpoint = Checkpoint::new(restored, body.next_epoch, self.checkpoint.roots());
        self.count_pages(uncounted);
        Ok(())
    }

    /// Quarters of live data of a log segment.
    fn live_data_of(&self, entry: &SegmentEntry) -> u32 {
        let is_meta = entry.stream == Stream::Meta.code();
        if is_meta { 0 } else { self.layout.count_of_disk(entry.live) }
    }

    /// The members; the place of each in the list is its bit in the masks of runs.
    fn restore_members_of(&mut self, body: &Body) -> Result<(), MountError> {
        if body.members.first().is_none_or(|member| member.id != 0) {
            return Err(MountError::MemberTable("its first member is not the device"));
        }
        let twice = |one: &Member, other: &Member| one.id == other.id || one.birth == other.birth;
        let list = &body.members;
        if list.iter().enumerate().any(|(at, one)| list[..at].iter().any(|other| twice(one, other)))
        {
            return Err(MountError::MemberTable("two members have one number or one birth"));
        }
        let (found, max) = (list.len(), Members::most(&self.options));
        if found > max {
            return Err(MountError::Members { found, pages: self.options.map_pages });
        }
        let (device, most) = (self.layout.geometry().logical_blocks, self.layout.thin_max());
        let others = list.iter().skip(1).map(|member| (member, member.logical_blocks));
        let sizes = list.iter().take(1).map(|member| (member, device)).chain(others);
        let member: Vec<MemberState> =
            sizes.map(|(member, blocks)| MemberState::restored(member, blocks)).collect();
        if member.iter().any(|member| member.blocks == 0 || member.blocks > most) {
            return Err(MountError::MemberTable("a member has no size that the backing can hold"));
        }
        for (slot, member) in member.iter().enumerate() {
            self.map.add_member(slot, member.pages(), None);
        }
        self.members = Members::new(member, body.next_member);
        self.fit_pages();
        Ok(())
    }

    /// Reads the directories, and notes what they point to and where they lie.
    fn restore_directories(
        &mut self,
        backing: &mut dyn Backing,
        made: &mut Vec<Location>,
    ) -> Result<(), MountError> {
        // Members have blocks in common. Places with their checksums, which tell blocks apart where one is damaged.
        let mut read: BTreeMap<(Location, u32), Option<DirectoryBlock>> = BTreeMap::new();
        for slot in self.members.slots() {
            let there = |place: &&DirectoryPlace| place.location.is_block();
            for place in self.members.of(slot).directory.iter().filter(there) {
                read.insert((place.location, place.crc), None);
            }
        }
        let places: Vec<Location> = read.keys().map(|(at, _)| *at).collect();
        let mut blocks = read.iter_mut();
        let uuid = self.label.uuid;
        fetch_each(backing, "directory", &places, |_, block| {
            if let Some(((at, crc), directory)) = blocks.next() {
                *directory = Some(decode_directory(block, *at, *crc, &uuid)?);
            }
            Ok(())
        })?;
        made.extend(places);
        for slot in self.members.slots().collect::<Vec<_>>() {
            for (at, place) in self.members.of(slot).directory.iter().enumerate() {
                let block = read.get(&(place.location, place.crc));
                let Some(Some(block)) = block else { continue };
                let pages = at * DIRECTORY_ENTRIES..self.map.pages_of(slot);
                for (page, entry) in pages.zip(block.entries.iter()) {
                    self.map.set_image(Map::key(slot, page), *entry, 0);
                    made.extend([entry.page, entry.sums].into_iter().filter(|at| at.is_block()));
                }
            }
        }
        Ok(())
    }

    /// Takes over what the batches behind the root changed.
    pub(crate) fn replayed(
        &mut self,
        body: &Body,
        replay: &Replay,
        clean: bool,
    ) -> Result<Recovery, MountError> {
        let written = |slot| {
            let member = self.members.of(slot);
            (member.birth, Written { slot, blocks: member.blocks })
        };
        let mut overlay = Overlay::new(self.members.slots().map(written).collect());
        let mut used = Vec::new();
        for found in &replay.batches {
            overlay.apply(found)?;
            used.push((
                found.batch.header.segment,
                found.batch.header.epoch,
                found.batch.header.stream,
            ));
        }
        let highest = used.iter().map(|(_, epoch, _)| *epoch).max().unwrap_or(0);
        // Batches that do not count may have used more.
        let most = u64_from(body.reserve.len());
        self.segments.take_over(&used, &body.reserve, highest.max(body.next_epoch + most) + 1);
        let records = overlay.records();
        for record in records.iter().flat_map(|(_, records)| records) {
            if record.location.is_block() {
                self.gain(record.location);
            }
        }
        let mut pages: Vec<usize> = Vec::new();
        for (slot, page) in overlay.pages() {
            self.map.mark_stale(Map::key(slot, page), self.checkpoint.runs_end());
            pages.push(page);
        }
        pages.sort_unstable();
        pages.dedup();
        self.log = Log::new(&self.options, self.layout.geometry().unit_blocks, replay.seq);
        self.flushes = Flushes::new(replay.seq);
        self.checkpoint.set_recovered(records);
        self.count_pages(pages.iter().copied());
        Ok(Recovery {
            clean: clean && pages.is_empty(),
            batches: u64_from(replay.batches.len()),
            headers: replay.headers,
            checked_blocks: replay.checked,
            pages: u64_from(pages.len()),
            seq: replay.seq,
        })
    }
}

fn decode_directory(
    block: &[u8],
    at: Location,
    crc: u32,
    uuid: &[u8; 16],
) -> Result<DirectoryBlock, MountError> {
    if checksum(block) != crc {
        return Err(damaged("directory", at)(BlockError::Checksum));
    }
    DirectoryBlock::decode(block, uuid, at.raw().into()).map_err(damaged("directory", at))
}

/// The pages that uncounted runs have records of.
fn pages_of(
    backing: &mut dyn Backing,
    runs: &Runs,
    uuid: &[u8; 16],
) -> Result<Vec<usize>, MountError> {
    let uncounted = runs.list.iter().filter(|run| !run.counted);
    let blocks = uncounted.flat_map(|run| &run.blocks[..run.index.len()]).copied();
    let places: Vec<Location> = blocks.collect();
    let mut pages = Vec::new();
    fetch_each(backing, "run", &places, |n, block| {
        let at = places[n];
        let block = RunBlock::decode(block, uuid, at.raw().into()).map_err(damaged("run", at))?;
        pages.extend(block.records.iter().map(|record| Map::place(record.lba).0));
        pages.dedup();
        Ok(())
    })?;
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

/// Reads the runs that a body names, but for their records.
fn read_runs(
    backing: &mut dyn Backing,
    entries: &[RunEntry],
    uuid: &[u8; 16],
) -> Result<Vec<Run>, MountError> {
    let mut runs: Vec<Run> = Vec::new();
    // Blocks of indexes, and the runs they are of.
    let (mut places, mut of) = (Vec::new(), Vec::new());
    for entry in entries {
        let blocks = locations(&entry.extents);
        let data = index(entry.data_blocks).min(blocks.len());
        of.resize(of.len() + blocks.len() - data, runs.len());
        places.extend_from_slice(&blocks[data..]);
        let RunEntry { number, members, records, counted, .. } = *entry;
        runs.push(Run { number, members, records, counted, blocks, index: Vec::new(), swept: 0 });
    }
    fetch_each(backing, "run index", &places, |n, block| {
        let at = places[n];
        let part = RunIndexBlock::decode(block, uuid, at.raw().into())
            .map_err(damaged("run index", at))?;
        runs[of[n]].index.extend(part.first.iter().map(|lba| lba.raw()));
        Ok(())
    })?;
    for (run, entry) in runs.iter().zip(entries) {
        if run.index.len() != index(entry.data_blocks).min(run.blocks.len()) {
            let at = run.blocks.first().copied().unwrap_or(Location::new(0));
            return Err(damaged("run index", at)(BlockError::Malformed(
                "not one entry for each block",
            )));
        }
    }
    Ok(runs)
}
