//! The map from headers alone.

use onefold_format::volume::{
    Body, BodyBlock, DecodedBatch, Root, SegmentState, Version, VolumeLabel,
};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Lba, Location};

use super::Rebuilt;
use super::image::{Homes, Image};
use super::survey::{Seen, Survey, batch_at};
use crate::backing::{Backing, read_block};
use crate::config::Options;
use crate::error::MountError;
use crate::log::Stream;
use crate::map::page::Entry;
use crate::recovery::replay::{Found, is_whole};
use crate::segments::Segment;
use crate::volume::Volume;
use crate::volume::recovery::layout_of;
use crate::zones::{ZoneReport, laid_out};

/// What writes of the device are marked with.
const DEVICE: u32 = 0;

/// Builds the volume that the headers tell of and writes its checkpoint. Its root is still to be written.
pub(super) fn rebuild(
    backing: &mut dyn Backing,
    label: VolumeLabel,
    options: Options,
    (survey, zones): (&Survey, Option<&ZoneReport>),
    generation: u64,
) -> Result<(Root, Homes, Rebuilt), MountError> {
    let layout = laid_out(layout_of(&label)?, zones)?;
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
    let table = build.count(survey);
    let Build { volume, rebuilt, birth: next_member, .. } = build;
    let image = Image { volume: &volume, survey, table, zones, next_member, generation };
    let (root, homes) = image.write(backing)?;
    Ok((root, homes, rebuilt))
}

/// The number of the next member that the last checkpoint knew: 1 if there never was one beside the device.
fn next_member(backing: &mut dyn Backing, uuid: &[u8; 16], survey: &Survey) -> Option<u32> {
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
    /// The batch at hand is older than one that is missing, or may have been left out by an opening.
    in_doubt: bool,
}

impl Build {
    fn replay(&mut self, backing: &mut dyn Backing, survey: &Survey) {
        self.told = vec![Told::Nothing; index64(self.volume.layout.geometry().logical_blocks)];
        let missing = self.last_missing(survey);
        let mut ends = survey.ends(&self.volume.layout);
        let uuid = self.volume.label.uuid;
        for seen in &survey.batches {
            let found = batch_at(backing, &uuid, seen);
            let sure = seen.is_durable || !self.volume.options.bytes;
            let whole = |found: &Found| sure || is_whole(backing, found).unwrap_or(false);
            let Some(found) = found.filter(whole) else {
                self.rebuilt.left_out += u64::from(!seen.is_meta());
                continue;
            };
            let counts = ends.surely_counts(seen);
            if !seen.is_meta() {
                self.in_doubt = survey.offline || seen.seq() < missing || !counts;
                self.apply(&found.batch, seen, counts);
            }
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

    /// A batch that may not count trims nothing, but puts what it would trim in doubt.
    fn apply(&mut self, batch: &DecodedBatch, seen: &Seen, counts: bool) {
        for trim in &batch.trims {
            self.birth = self.birth.max(trim.birth + 1);
            if trim.birth == DEVICE {
                let end = trim.lba.raw().saturating_add(trim.blocks).min(u64_from(self.told.len()));
                for lba in trim.lba.raw()..end {
                    if counts {
                        self.set(lba, Entry::UNMAPPED);
                    } else if self.told[index64(lba)] == Told::Newest {
                        self.told[index64(lba)] = Told::Old;
                    }
                }
            }
        }
        for (at, one) in batch.located(seen.start) {
            let Version { lba, birth, crc, source } = one;
            if source.is_some_and(|source| !source.is_block()) || !self.is_ours(lba, birth) {
                continue;
            }
            match source {
                None => self.set(lba.raw(), Entry { at, crc }),
                Some(source) => self.moved(lba, source, Entry { at, crc }),
            }
        }
    }

    fn is_ours(&mut self, lba: Lba, birth: u32) -> bool {
        self.birth = self.birth.max(birth + 1);
        self.rebuilt.of_others += u64::from(birth != DEVICE);
        birth == DEVICE && lba.raw() < u64_from(self.told.len())
    }

    /// A copy. It is the newest version unless it was made for a snapshot that had an older one (`crate::volume::recovery::rebuild`, invariant 3).
    fn moved(&mut self, lba: Lba, source: Location, entry: Entry) {
        let now = self.volume.map.peek(lba);
        // What has the same checksum is the same.
        let follows = now.at == source || (now.at.is_block() && now.crc == entry.crc);
        if self.alone || follows {
            // A snapshot may have had it moved, which says nothing of the device: what was in doubt stays so.
            let in_doubt = !self.alone && self.told[index64(lba.raw())] == Told::Old;
            self.set(lba.raw(), entry);
            if in_doubt {
                self.told[index64(lba.raw())] = Told::Old;
            }
        } else if self.told[index64(lba.raw())] == Told::Nothing {
            self.set(lba.raw(), entry);
            self.told[index64(lba.raw())] = Told::Old;
        } else {
            self.set(lba.raw(), Entry::LOST);
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

    /// The log segments with what is live there; those that have nothing are free.
    fn count(&mut self, survey: &Survey) -> Vec<Segment> {
        let layout = &self.volume.layout;
        let mut table = vec![Segment::FREE; index(layout.segments())];
        for fixed in layout.fixed() {
            table[index(*fixed)].state = SegmentState::Fixed;
        }
        for seen in &survey.batches {
            let segment = &mut table[seen.header.segment.index()];
            segment.stream = Stream::from_code(seen.header.stream).unwrap_or(Stream::User);
            segment.epoch = seen.header.epoch;
        }
        for lba in 0..u64_from(self.told.len()) {
            let at = self.volume.map.peek(Lba::new(lba)).at;
            self.rebuilt.lost += u64::from(at == Location::LOST);
            if !at.is_block() {
                continue;
            }
            let segment = &mut table[layout.segment_of(at).index()];
            segment.state = SegmentState::Closed;
            segment.quarters += layout.quarters_of(at);
            self.rebuilt.mapped += 1;
            if self.told[index64(lba)] == Told::Old {
                self.rebuilt.note_uncertain(Lba::new(lba));
            }
        }
        table
    }
}
