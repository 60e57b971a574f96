//! The map from headers alone.

use std::collections::BTreeSet;

use onefold_format::volume::{
    Body, BodyBlock, DIRECTORY_ENTRIES, DecodedBatch, DirectoryPlace, RecordList, SegmentState,
    VolumeLabel,
};
use onefold_units::convert::{index, index64, u32_from, u64_from};
use onefold_units::{Lba, Location, LogSegmentId, Nanos};

use super::Rebuilt;
use super::survey::{Seen, Survey, batch_at};
use crate::backing::{Backing, read_block, settle};
use crate::checkpoint::{Checkpoint, Restored};
use crate::config::Options;
use crate::error::MountError;
use crate::family::{Family, Kin};
use crate::flush::Flushes;
use crate::log::{Log, Stream};
use crate::mount::layout_of;
use crate::page::Entry;
use crate::replay::{Found, is_whole};
use crate::runs::Runs;
use crate::segments::{Segment, Segments};
use crate::volume::Volume;

/// What writes of the device are marked with.
const DEVICE: u32 = 0;

/// Builds and commits the volume that the headers tell of.
pub(super) fn rebuild<B: Backing>(
    backing: &mut B,
    label: VolumeLabel,
    options: Options,
    survey: &Survey,
    generation: u64,
) -> Result<Rebuilt, MountError> {
    let layout = layout_of(&label)?;
    let uuid = label.uuid;
    let members = next_member(backing, &uuid, survey);
    let mut build = Build {
        volume: Volume::blank(layout, options, label),
        told: Vec::new(),
        rebuilt: Rebuilt::of(super::Found::Headers, survey),
        alone: members == Some(1),
        // Where that is not known there may have been one, and the next one to look has to know.
        birth: members.unwrap_or(2),
        in_doubt: false,
    };
    build.replay(backing, survey);
    let (mut volume, rebuilt) = build.finish(survey, generation);
    volume.close();
    if !settle(&mut volume, backing, Nanos::ZERO) {
        return Err(MountError::Backing(
            "the new checkpoint was written, or no log segment is free for it",
        ));
    }
    Ok(rebuilt)
}

/// The number of the next member that the last checkpoint knew: 1 if there never was one beside the device.
fn next_member<B: Backing>(backing: &mut B, uuid: &[u8; 16], survey: &Survey) -> Option<u32> {
    let mut bytes = Vec::new();
    for at in &survey.bodies.last()?.blocks {
        let at = u64::from(at.raw());
        let block = read_block(backing, at).ok()?;
        bytes.extend_from_slice(BodyBlock::decode(&block[..], uuid, at).ok()?.payload);
    }
    Body::decode(&bytes).ok().map(|body| body.next_member)
}

/// What headers say of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// It was trimmed.
    Trimmed,
    /// Its version is older than a batch that is missing.
    Old,
    Newest,
}

struct Build {
    volume: Volume,
    /// What is known of the newest version of each block.
    told: Vec<Told>,
    rebuilt: Rebuilt,
    /// There never was a snapshot or clone.
    alone: bool,
    /// The next member.
    birth: u32,
    /// The batch at hand is older than one that is missing.
    in_doubt: bool,
}

impl Build {
    fn replay<B: Backing>(&mut self, backing: &mut B, survey: &Survey) {
        self.told = vec![Told::Nothing; index64(self.volume.layout.geometry().logical_blocks)];
        let missing = self.last_missing(survey);
        let uuid = self.volume.uuid;
        for seen in survey.batches.iter().filter(|seen| !seen.is_meta()) {
            let found = batch_at(backing, &uuid, seen);
            let sure = seen.seq() <= survey.durable || !self.volume.options.bytes;
            let whole = |found: &Found| sure || is_whole(backing, found).unwrap_or(false);
            let Some(found) = found.filter(whole) else {
                self.rebuilt.left_out += 1;
                continue;
            };
            self.in_doubt = seen.seq() < missing;
            self.apply(&found.batch, seen);
        }
    }

    /// The highest number without a batch; those that are missing are counted.
    fn last_missing(&mut self, survey: &Survey) -> u64 {
        let (mut next, mut last) = (1, 0);
        for seen in &survey.batches {
            if seen.seq() > next {
                self.rebuilt.missing += seen.seq() - next;
                last = seen.seq() - 1;
            }
            next = seen.seq() + 1;
        }
        last
    }

    fn apply(&mut self, batch: &DecodedBatch, seen: &Seen) {
        for trim in &batch.trims {
            self.birth = self.birth.max(trim.birth + 1);
            if trim.birth == DEVICE {
                let end = trim.lba.raw().saturating_add(trim.blocks).min(u64_from(self.told.len()));
                (trim.lba.raw()..end).for_each(|lba| self.set(lba, Entry::UNMAPPED));
            }
        }
        let places = (seen.start + 1..).map(Location::new);
        match &batch.records {
            RecordList::Data(list) => {
                for (record, at) in list.iter().zip(places) {
                    if self.is_ours(record.lba, record.birth) {
                        self.set(record.lba.raw(), Entry { at, crc: record.crc });
                    }
                }
            }
            RecordList::Clean(list) => {
                let copies = list.iter().zip(places);
                for (record, at) in copies.filter(|(record, _)| record.source.is_block()) {
                    if self.is_ours(record.lba, record.birth) {
                        let entry = Entry { at, crc: record.crc };
                        self.moved(record.lba, record.source, entry);
                    }
                }
            }
            RecordList::Meta(_) => {}
        }
    }

    fn is_ours(&mut self, lba: Lba, birth: u32) -> bool {
        self.birth = self.birth.max(birth + 1);
        self.rebuilt.of_others += u64::from(birth != DEVICE);
        birth == DEVICE && lba.raw() < u64_from(self.told.len())
    }

    /// A copy. It is the newest version unless it was made for a snapshot that had an older one (`crate::rebuild`, invariant 3).
    fn moved(&mut self, lba: Lba, source: Location, entry: Entry) {
        let now = self.volume.map.peek(lba);
        // What has the same checksum is the same.
        let follows = now.at == source || (now.at.is_block() && now.crc == entry.crc);
        if self.alone || follows {
            self.set(lba.raw(), entry);
        } else if self.told[index64(lba.raw())] == Told::Nothing {
            self.set(lba.raw(), entry);
            self.told[index64(lba.raw())] = Told::Old;
        } else {
            self.set(lba.raw(), Entry { at: Location::LOST, crc: 0 });
        }
    }

    fn set(&mut self, lba: u64, entry: Entry) {
        let mapped = entry.at != Location::UNMAPPED;
        if mapped || self.volume.map.peek(Lba::new(lba)) != Entry::UNMAPPED {
            self.volume.map.set(Lba::new(lba), entry);
        }
        self.told[index64(lba)] = match (mapped, self.in_doubt) {
            (false, _) => Told::Trimmed,
            (true, true) => Told::Old,
            (true, false) => Told::Newest,
        };
    }

    /// The volume with its counts, ready for its first checkpoint.
    fn finish(mut self, survey: &Survey, generation: u64) -> (Volume, Rebuilt) {
        let volume = &mut self.volume;
        let mut table = vec![Segment::FREE; index64(volume.layout.segments().into())];
        for fixed in volume.layout.fixed() {
            table[index64(u64::from(*fixed))].state = SegmentState::Fixed;
        }
        for seen in &survey.batches {
            let segment = &mut table[seen.header.segment.index()];
            segment.state = SegmentState::Closed;
            segment.stream = Stream::from_code(seen.header.stream).unwrap_or(Stream::User);
            segment.epoch = seen.header.epoch;
        }
        for lba in 0..u64_from(self.told.len()) {
            let at = volume.map.peek(Lba::new(lba)).at;
            self.rebuilt.lost += u64::from(at == Location::LOST);
            if !at.is_block() {
                continue;
            }
            table[volume.layout.segment_of(at).index()].live += 1;
            self.rebuilt.mapped += 1;
            if self.told[index64(lba)] == Told::Old {
                self.rebuilt.note_uncertain(Lba::new(lba));
            }
        }
        if self.alone {
            let blocks = volume.segment_blocks();
            make_room(&mut table, survey, blocks_of_checkpoint(self.rebuilt.mapped) / blocks + 3);
        }
        // Numbers of uses that left no header behind are not given out again, and no number of a batch is.
        let next_epoch = survey.epoch + u64::from(volume.layout.segments()) + 1;
        let nowhere = DirectoryPlace { location: Location::UNMAPPED, crc: 0 };
        let blocks = volume.layout.map_pages().div_ceil(DIRECTORY_ENTRIES);
        volume.family = Family::new(vec![Kin::device(vec![nowhere; blocks])], self.birth);
        volume.segments = Segments::restore(table, next_epoch);
        volume.log = Log::new(volume.options.batches, survey.last);
        volume.flushes = Flushes::new(survey.last);
        volume.incarnation = survey.incarnation + 1;
        let runs = Runs { list: Vec::new(), next_number: survey.last + 1 };
        let restored = Restored { generation: generation - 1, runs, body: Vec::new() };
        volume.checkpoint = Checkpoint::new(restored, next_epoch);
        (self.volume, self.rebuilt)
    }
}

/// Blocks that a checkpoint takes in which so many changed, at most: runs, the pages that are swept with them, and the body.
fn blocks_of_checkpoint(mapped: u64) -> u32 {
    u32_from(index64(mapped / 40)) + 64
}

/// Where too few log segments are without headers, the checkpoint has to go where only dead versions lie. Those with trims
/// stay, with batches that may not have been durable, and all that could be of a checkpoint: who begins again should come to the
/// same. It does not always: docs/volume.md, what is missing.
fn make_room(table: &mut [Segment], survey: &Survey, wanted: u32) {
    let free = table.iter().filter(|segment| segment.state == SegmentState::Free).count();
    let stays = |seen: &&Seen| seen.seq() > survey.durable || seen.is_meta() || seen.has_trims;
    let kept: BTreeSet<LogSegmentId> =
        survey.batches.iter().filter(stays).map(|seen| seen.header.segment).collect();
    let dead = (0..)
        .map(LogSegmentId::new)
        .zip(table)
        .filter(|(id, segment)| segment.is_empty_closed() && !kept.contains(id));
    for (_, segment) in dead.take(index(wanted).saturating_sub(free)) {
        *segment = Segment::FREE;
    }
}
