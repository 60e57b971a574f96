//! Taking over what a root describes, and what the batches behind it changed.

use onefold_format::checksum;
use onefold_format::volume::{
    BlockError, Body, DIRECTORY_ENTRIES, DirectoryBlock, DirectoryPlace, RunBlock, RunEntry,
    RunIndexBlock, SegmentState,
};
use onefold_units::Location;
use onefold_units::convert::{index, u64_from};

use crate::backing::Backing;
use crate::checkpoint::{Checkpoint, Restored};
use crate::flush::Flushes;
use crate::layout::Layout;
use crate::log::{Log, Stream};
use crate::map::Map;
use crate::mount::{MountError, Recovery, damaged, fetch, locations};
use crate::replay::{Candidate, Overlay, Replay};
use crate::runs::{Run, Runs};
use crate::segments::{Segment, Segments, fit};
use crate::volume::Volume;

/// Where batches behind the root may lie.
pub(crate) fn candidates(body: &Body, layout: &Layout) -> Vec<Candidate> {
    let open = body.open.iter().filter_map(|open| {
        let epoch = body.segments.get(open.segment.index())?.epoch;
        let from = open.next;
        Some(Candidate { segment: open.segment, from, epoch_min: epoch, epoch_max: epoch })
    });
    let listed = body.reserve.iter().map(|segment| Candidate {
        segment: *segment,
        from: 0,
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
        let member = body.members.first().ok_or(MountError::NoRoot { slots: 1 })?;
        let mut made = body_blocks.clone();
        let directories = self.map.len().div_ceil(DIRECTORY_ENTRIES);
        for (at, place) in member.directory.iter().take(directories).enumerate() {
            if place.location.is_block() {
                made.push(place.location);
                self.restore_directory(backing, at, *place, &mut made)?;
            }
        }
        let mut runs = Runs { list: Vec::new(), next_number: body.next_run };
        for entry in &body.runs {
            let run = read_run(backing, entry, &self.uuid)?;
            made.extend(&run.blocks);
            runs.list.push(run);
        }
        let mut uncounted = Vec::new();
        for run in runs.list.iter().filter(|run| !run.counted) {
            uncounted.extend(pages_of(backing, run, &self.uuid)?);
            uncounted.retain(|page| *page < self.map.len());
        }
        if !runs.list.is_empty() {
            // Which pages have records is known when they are read.
            (0..self.map.len()).for_each(|page| self.map.mark_stale(page));
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
        for at in made {
            self.gain(at);
        }
        let mut directory = member.directory.clone();
        directory.resize(directories, DirectoryPlace { location: Location::UNMAPPED, crc: 0 });
        let restored = Restored { generation, runs, directory, body: body_blocks };
        self.checkpoint = Checkpoint::new(restored, body.next_epoch);
        self.checkpoint.count_pages(uncounted);
        Ok(())
    }

    fn restore_directory<B: Backing>(
        &mut self,
        backing: &mut B,
        at: usize,
        place: DirectoryPlace,
        made: &mut Vec<Location>,
    ) -> Result<(), MountError> {
        let block = fetch(backing, "directory", place.location)?;
        if checksum(&block[..]) != place.crc {
            return Err(damaged("directory", place.location)(BlockError::Checksum));
        }
        let directory = DirectoryBlock::decode(&block[..], &self.uuid, place.location.raw().into())
            .map_err(damaged("directory", place.location))?;
        for (page, entry) in (at * DIRECTORY_ENTRIES..self.map.len()).zip(directory.entries.iter())
        {
            self.map.set_image(page, *entry, false);
            made.extend([entry.page, entry.sums].into_iter().filter(|at| at.is_block()));
        }
        Ok(())
    }

    /// Takes over what the batches behind the root changed.
    pub(crate) fn replayed(&mut self, body: &Body, replay: &Replay, clean: bool) -> Recovery {
        let mut overlay = Overlay::default();
        let mut used = Vec::new();
        for found in &replay.batches {
            overlay.apply(found, self.layout.geometry().logical_blocks);
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
        for record in &records {
            if record.location.is_block() {
                self.gain(record.location);
            }
        }
        let pages: Vec<usize> = overlay.pages().collect();
        for page in &pages {
            self.map.mark_stale(*page);
        }
        self.log = Log::new(self.options.batches, replay.seq);
        self.flushes = Flushes::new(replay.seq);
        self.recovered = (!records.is_empty()).then_some(records);
        self.checkpoint.count_pages(pages.clone());
        Recovery {
            clean: clean && pages.is_empty(),
            batches: u64_from(replay.batches.len()),
            headers: replay.headers,
            checked_blocks: replay.checked,
            pages: u64_from(pages.len()),
            seq: replay.seq,
        }
    }
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
        records: entry.records,
        counted: entry.counted,
        blocks,
        index: first,
        swept: 0,
    })
}
