//! The checkpoint of a volume that was made from headers alone.
//!
//! 1. It is written where no header lies: to log segments without any, else over the data of batches in log segments where nothing
//!    is live. So all headers stay, and with them whatever the volume was made from, until the root counts: whoever is interrupted
//!    comes to the same.
//! 2. Only data that its own opening called durable is written over. No attempt reads that again, and no older checkpoint that
//!    missed what was durable is taken (`whole`).
//! 3. No batch describes it, so nothing but the root leads there. Once that counts, the headers among it are erased, as the data
//!    behind them is gone.

use std::cmp::Reverse;

use onefold_format::checksum;
use onefold_format::volume::{
    BODY_PAYLOAD_BYTES, Body, BodyBlock, BodyPlace, DIRECTORY_ENTRIES, DirectoryBlock,
    DirectoryEntry, DirectoryPlace, Extent, PAGE_ENTRIES, ROOT_EXTENTS_MAX, Root, SegmentEntry,
    SegmentState, encode_page,
};
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Location, LogSegmentId, Seq, ZoneId};

use super::roots::finish_zones;
use super::survey::Survey;
use crate::backing::{Backing, locations};
use crate::checkpoint::extents;
use crate::error::MountError;
use crate::io::IoFailed;
use crate::limits::{BLOCK, RESERVE_LIST};
use crate::log::Stream;
use crate::map::page::{Page, blank_entries};
use crate::segments::Segment;
use crate::snapshots::MemberState;
use crate::volume::Volume;
use crate::zones::ZoneReport;

/// Log segments that stay free: opening the volume takes one for its checkpoint, and the cleaner needs some to begin.
const SPARE: usize = 3;

/// Where the checkpoint goes.
#[derive(Debug, Default)]
pub(super) struct Homes {
    pub(super) segments: Vec<LogSegmentId>,
    /// As many blocks as it takes, in the order in which they are written.
    blocks: Vec<Location>,
}

/// What is known of the volume.
pub(super) struct Image<'a> {
    pub(super) volume: &'a Volume,
    pub(super) survey: &'a Survey,
    /// Its log segments: those without live blocks can be taken.
    pub(super) table: Vec<Segment>,
    pub(super) zones: Option<&'a ZoneReport>,
    pub(super) next_member: u32,
    pub(super) generation: u64,
}

impl Image<'_> {
    /// Writes the checkpoint and makes it durable. Gives its root, and where it lies.
    pub(super) fn write(mut self, backing: &mut dyn Backing) -> Result<(Root, Homes), MountError> {
        let homes = self.homes()?;
        let failed = |_| MountError::Backing("the new checkpoint was written");
        self.prepare(backing, &homes).map_err(failed)?;
        for id in &homes.segments {
            let epoch = self.table[id.index()].epoch;
            let state = SegmentState::Closed;
            self.table[id.index()] =
                Segment { state, stream: Stream::Meta, epoch, ..Segment::FREE };
        }
        let mut writer = Writer { backing, places: homes.blocks.iter() };
        let directory = self.write_map(&mut writer).map_err(failed)?;
        let body = self.body(directory).encode();
        let blocks = self.write_body(&mut writer, &body).map_err(failed)?;
        backing.flush().map_err(failed)?;
        let extents = extents(&blocks);
        if extents.len() > ROOT_EXTENTS_MAX {
            return Err(self.no_room(u64_from(homes.blocks.len())));
        }
        let root = Root {
            generation: self.generation,
            incarnation: self.survey.incarnation + 1,
            seq: Seq::new(self.survey.last),
            clean: true,
            body: BodyPlace::of(&body, extents),
        };
        Ok((root, homes))
    }

    /// Finds room for everything, in as few log segments as possible (invariant 1).
    fn homes(&self) -> Result<Homes, MountError> {
        let wanted = self.blocks();
        let mut empty: Vec<(LogSegmentId, Vec<Extent>)> = (0..)
            .map(LogSegmentId::new)
            .zip(&self.table)
            .filter(|(_, segment)| segment.state != SegmentState::Fixed && segment.live() == 0)
            .filter(|(id, _)| self.zones.is_none_or(|zones| zones.status(id.raw()).is_writable()))
            .map(|(id, _)| (id, self.room_in(id)))
            .collect();
        empty.sort_by_key(|(_, room)| Reverse(room.iter().map(|one| one.blocks).sum::<u32>()));
        let mut homes = Homes::default();
        let (mut room, mut found) = (Vec::new(), 0);
        for (id, extents) in &empty {
            if found >= wanted {
                break;
            }
            found += extents.iter().map(|one| u64::from(one.blocks)).sum::<u64>();
            room.extend_from_slice(extents);
            homes.segments.push(*id);
        }
        if found < wanted || empty.len() < homes.segments.len() + SPARE {
            return Err(self.no_room(wanted));
        }
        // The body comes last, and a root names only so many pieces of it.
        room.sort_by_key(|one| one.blocks);
        homes.blocks = locations(&room);
        homes.blocks.truncate(index64(wanted));
        Ok(homes)
    }

    /// What of a log segment without live blocks can be written, none of it a header (invariants 1 and 2).
    fn room_in(&self, id: LogSegmentId) -> Vec<Extent> {
        let layout = &self.volume.layout;
        if !self.survey.used.contains(&id) {
            let blocks = layout.geometry().segment_blocks;
            return vec![Extent { location: layout.start_of(id), blocks }];
        }
        if layout.is_sequential(id) {
            return Vec::new();
        }
        let here = self.survey.batches.iter().filter(|seen| seen.header.segment == id);
        here.filter(|seen| seen.is_durable && !seen.is_meta() && seen.blocks > 0)
            .map(|seen| Extent { location: Location::new(seen.start + 1), blocks: seen.blocks })
            .collect()
    }

    fn no_room(&self, wanted: u64) -> MountError {
        let empty = self
            .table
            .iter()
            .filter(|segment| segment.state != SegmentState::Fixed && segment.live() == 0);
        MountError::NoRoom { wanted, empty: empty.count(), spare: SPARE }
    }

    /// Blocks that the checkpoint takes.
    fn blocks(&self) -> u64 {
        let map = &self.volume.map;
        let pages = (0..map.pages()).filter(|page| !map.maps_nothing(*page)).count();
        let body = self.body(self.nowhere()).encode().len().div_ceil(BODY_PAYLOAD_BYTES);
        u64_from(2 * pages + self.directories() + body)
    }

    fn directories(&self) -> usize {
        self.volume.map.pages().div_ceil(DIRECTORY_ENTRIES)
    }

    fn nowhere(&self) -> Vec<DirectoryPlace> {
        vec![DirectoryPlace { location: Location::UNMAPPED, crc: 0 }; self.directories()]
    }

    /// Makes zones ready to be written.
    fn prepare(&self, backing: &mut dyn Backing, homes: &Homes) -> Result<(), IoFailed> {
        let Some(zones) = self.zones else { return Ok(()) };
        finish_zones(backing, zones, &homes.segments)?;
        for id in &homes.segments {
            if zones.status(id.raw()).has_to_be_reset() {
                backing.reset(ZoneId::new(id.raw()))?;
            }
        }
        backing.flush()
    }

    /// Writes all pages and the blocks of the directory; says where these lie.
    fn write_map(&self, writer: &mut Writer<'_>) -> Result<Vec<DirectoryPlace>, IoFailed> {
        let map = &self.volume.map;
        let mut images = vec![DirectoryEntry::ABSENT; map.pages()];
        for (page, image) in (0..).zip(&mut images) {
            if map.maps_nothing(page) {
                continue;
            }
            let entries = map.page(page).map_or_else(blank_entries, Page::copy);
            let mut put =
                |words: [u32; PAGE_ENTRIES]| writer.put(|_, block| encode_page(&words, block));
            let (page, page_crc) = put(std::array::from_fn(|at| entries[at].at.raw()))?;
            let (sums, sums_crc) = put(std::array::from_fn(|at| entries[at].crc))?;
            *image = DirectoryEntry { page, page_crc, sums, sums_crc };
        }
        let mut directory = Vec::new();
        for (at, images) in (0..).zip(images.chunks(DIRECTORY_ENTRIES)) {
            let mut entries = Box::new([DirectoryEntry::ABSENT; DIRECTORY_ENTRIES]);
            entries[..images.len()].copy_from_slice(images);
            let seq = Seq::new(self.survey.last);
            let one = DirectoryBlock { seq, index: at, member: 0, entries };
            let (location, crc) =
                writer.put(|at, block| one.encode(&self.volume.label.uuid, at, block))?;
            directory.push(DirectoryPlace { location, crc });
        }
        Ok(directory)
    }

    fn write_body(&self, writer: &mut Writer<'_>, body: &[u8]) -> Result<Vec<Location>, IoFailed> {
        let parts = (0..).zip(body.chunks(BODY_PAYLOAD_BYTES));
        let seq = Seq::new(self.survey.last);
        parts
            .map(|(index, payload)| {
                let part = BodyBlock { seq, index, payload };
                let put = writer.put(|at, block| part.encode(&self.volume.label.uuid, at, block));
                put.map(|(at, _)| at)
            })
            .collect()
    }

    fn body(&self, directory: Vec<DirectoryPlace>) -> Body {
        let logical_blocks = self.volume.layout.geometry().logical_blocks;
        let mut device = MemberState::device(logical_blocks).describe();
        device.directory = directory;
        let segments = self.table.iter().map(|segment| SegmentEntry {
            state: segment.state,
            stream: segment.stream.code(),
            live: self.volume.layout.count_on_disk(segment.quarters),
            epoch: segment.epoch,
            doubtful: segment.errors.doubtful,
        });
        let free = (0..).map(LogSegmentId::new).zip(&self.table);
        let free = free.filter(|(_, segment)| segment.state == SegmentState::Free);
        Body {
            seq: Seq::new(self.survey.last),
            // Numbers of uses that left no header behind are not given out again.
            next_epoch: self.survey.epoch + u64::from(self.volume.layout.segments()) + 1,
            next_run: self.survey.last + 1,
            next_member: self.next_member,
            logical_blocks,
            counters: Vec::new(),
            members: vec![device],
            runs: Vec::new(),
            segments: segments.collect(),
            open: Vec::new(),
            reserve: free.map(|(id, _)| id).take(RESERVE_LIST).collect(),
        }
    }
}

/// Writes blocks one after the other.
struct Writer<'a> {
    backing: &'a mut dyn Backing,
    places: std::slice::Iter<'a, Location>,
}

impl Writer<'_> {
    /// Writes the next block; gives its place and checksum.
    fn put(&mut self, encode: impl FnOnce(u64, &mut [u8])) -> Result<(Location, u32), IoFailed> {
        let at = *self.places.next().expect("room for all blocks was found");
        let mut block = [0; BLOCK];
        encode(at.raw().into(), &mut block);
        self.backing.write(at.raw().into(), &block)?;
        Ok((at, checksum(&block)))
    }
}

/// Erases the headers among a checkpoint that counts (invariant 3).
pub(super) fn erase_headers(
    backing: &mut dyn Backing,
    survey: &Survey,
    homes: &Homes,
) -> Result<(), IoFailed> {
    let here = survey.batches.iter().filter(|seen| homes.segments.contains(&seen.header.segment));
    here.map(|seen| u64::from(seen.start)).try_for_each(|at| backing.write(at, &[0; BLOCK]))?;
    backing.flush()
}
