//! Taking over what a root describes, and what the batches behind it changed.

use std::collections::{BTreeMap, btree_map};

use onefold_format::checksum;
use onefold_format::volume::{
    BlockError, Body, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryPlace, Member, RunBlock,
    RunEntry, RunIndexBlock, SegmentState,
};
use onefold_units::Location;
use onefold_units::convert::{index, u64_from};

use crate::backing::Backing;
use crate::checkpoint::{Checkpoint, Restored};
use crate::error::MountError;
use crate::family::{Family, Kin};
use crate::flush::Flushes;
use crate::layout::Layout;
use crate::log::{Log, Stream};
use crate::map::Map;
use crate::mount::{Recovery, damaged, fetch, locations};
use crate::replay::{Candidate, Overlay, Replay};
use crate::runs::{Run, Runs};
use crate::segments::{Segment, Segments, fit};
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
    pub(crate) fn restore<B: Backing>(
        &mut self,
        backing: &mut B,
        body: &Body,
        body_blocks: Vec<Location>,
        generation: u64,
    ) -> Result<(), MountError> {
        self.restore_family_of(body)?;
        let mut made = body_blocks.clone();
        self.restore_directories(backing, &mut made)?;
        let mut runs = Runs { list: Vec::new(), next_number: body.next_run };
        for entry in &body.runs {
            let run = read_run(backing, entry, &self.uuid)?;
            made.extend(&run.blocks);
            runs.list.push(run);
        }
        let mut uncounted = Vec::new();
        for run in runs.list.iter().filter(|run| !run.counted) {
            uncounted.extend(pages_of(backing, run, &self.uuid)?);
            uncounted.retain(|page| *page < self.map.pages_each());
        }
        if !runs.list.is_empty() {
            // Which pages have records is known when they are read.
            for slot in self.family.slots().collect::<Vec<_>>() {
                (self.map.key(slot, 0)..self.map.key(slot + 1, 0))
                    .for_each(|key| self.map.mark_stale(key));
            }
        }
        let table = body.segments.iter().map(|entry| Segment {
            state: match entry.state {
                SegmentState::Open => SegmentState::Closed,
                SegmentState::Prefree => SegmentState::Free,
                other => other,
            },
            stream: Stream::from_code(entry.stream).unwrap_or(Stream::User),
            // What the root itself points to is counted below.
            live: if entry.stream == Stream::Meta.code() { 0 } else { entry.live },
            epoch: entry.epoch,
            pins: 0,
            listed: false,
            leaving: false,
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
        self.checkpoint = Checkpoint::new(restored, body.next_epoch);
        self.count_pages(uncounted);
        Ok(())
    }

    /// The members; the place of each in the list is its bit in the masks of runs.
    fn restore_family_of(&mut self, body: &Body) -> Result<(), MountError> {
        if body.members.first().is_none_or(|member| member.id != 0) {
            return Err(MountError::Family("its first member is not the device"));
        }
        let twice = |one: &Member, other: &Member| one.id == other.id || one.birth == other.birth;
        let list = &body.members;
        if list.iter().enumerate().any(|(at, one)| list[..at].iter().any(|other| twice(one, other)))
        {
            return Err(MountError::Family("two members have one number or one birth"));
        }
        let (found, max) = (list.len(), Family::most(&self.options));
        if found > max {
            return Err(MountError::Members { found, pages: self.options.map_pages });
        }
        let blocks = self.map.pages_each().div_ceil(DIRECTORY_ENTRIES);
        let kin = list.iter().map(|member| Kin::restored(member, blocks)).collect();
        self.family = Family::new(kin, body.next_member);
        (0..found).for_each(|slot| self.map.add_member(slot, None));
        Ok(())
    }

    /// Reads the directories, and notes what they point to and where they lie.
    fn restore_directories<B: Backing>(
        &mut self,
        backing: &mut B,
        made: &mut Vec<Location>,
    ) -> Result<(), MountError> {
        let mut read: BTreeMap<Location, DirectoryBlock> = BTreeMap::new();
        for slot in self.family.slots().collect::<Vec<_>>() {
            let places = self.family.of(slot).directory.clone();
            for (at, place) in places.iter().enumerate().filter(|(_, p)| p.location.is_block()) {
                let block = match read.entry(place.location) {
                    btree_map::Entry::Occupied(there) => there.into_mut(),
                    btree_map::Entry::Vacant(free) => {
                        made.push(place.location);
                        free.insert(read_directory(backing, *place, &self.uuid)?)
                    }
                };
                let pages = at * DIRECTORY_ENTRIES..self.map.pages_each();
                for (page, entry) in pages.zip(block.entries.iter()) {
                    self.map.set_image(self.map.key(slot, page), *entry, false);
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
        let births = body.members.iter().map(|member| member.birth).zip(0..).collect();
        let mut overlay = Overlay::new(births, self.layout.geometry().logical_blocks);
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
            self.map.mark_stale(self.map.key(slot, page));
            pages.push(page);
        }
        pages.sort_unstable();
        pages.dedup();
        self.log = Log::new(self.options.batches, replay.seq);
        self.flushes = Flushes::new(replay.seq);
        self.recovered = records;
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

fn read_directory<B: Backing>(
    backing: &mut B,
    place: DirectoryPlace,
    uuid: &[u8; 16],
) -> Result<DirectoryBlock, MountError> {
    let block = fetch(backing, "directory", place.location)?;
    if checksum(&block[..]) != place.crc {
        return Err(damaged("directory", place.location)(BlockError::Checksum));
    }
    DirectoryBlock::decode(&block[..], uuid, place.location.raw().into())
        .map_err(damaged("directory", place.location))
}

/// The pages that a run has records of.
fn pages_of<B: Backing>(
    backing: &mut B,
    run: &Run,
    uuid: &[u8; 16],
) -> Result<Vec<usize>, MountError> {
    let mut pages = Vec::new();
    for at in &run.blocks[..run.index.len()] {
        let block = fetch(backing, "run", *at)?;
        let block =
            RunBlock::decode(&block[..], uuid, at.raw().into()).map_err(damaged("run", *at))?;
        pages.extend(block.records.iter().map(|record| Map::place(record.lba).0));
        pages.dedup();
    }
    Ok(pages)
}

fn read_run<B: Backing>(
    backing: &mut B,
    entry: &RunEntry,
    uuid: &[u8; 16],
) -> Result<Run, MountError> {
    let blocks = locations(&entry.extents);
    let data = index(entry.data_blocks).min(blocks.len());
    let mut first = Vec::new();
    for at in &blocks[data..] {
        let block = fetch(backing, "run index", *at)?;
        let part = RunIndexBlock::decode(&block[..], uuid, at.raw().into())
            .map_err(damaged("run index", *at))?;
        first.extend(part.first.iter().map(|lba| lba.raw()));
    }
    if first.len() != data {
        let at = blocks.first().copied().unwrap_or(Location::new(0));
        return Err(damaged("run index", at)(BlockError::Malformed(
            "not one entry for each block",
        )));
    }
    Ok(Run {
        number: entry.number,
        members: entry.members,
        records: entry.records,
        counted: entry.counted,
        blocks,
        index: first,
        swept: 0,
    })
}
