//! Replaying the batches behind the last root.
//!
//! 1. A header counts iff it is whole, lies where it says, and was written after the root: by the same incarnation, to a log
//!    segment that the root left open or listed, in a use of it that the root did not know yet.
//! 2. Of the batches of one number the one with the highest attempt counts. Of all, the longest run without a gap behind
//!    the number of the root counts.
//! 3. A batch that may not have been durable counts only if all its blocks are as their records say; the first one that is
//!    not ends the run. Below the highest number that was known to be durable a gap or damage is no power cut.
//!    A block that cannot be read may hold one that counts, so it is an error.
//! 4. What the cleaner moved behind the root is where it was: its log segment is given back only after a checkpoint that
//!    covers the copies. So copies change nothing, and nobody has to know which members had a block.

mod walk;

use std::collections::BTreeMap;

use onefold_format::checksum;
use onefold_format::volume::{
    BlockError, DecodedBatch, RecordList, Root, RunRecord, Slot, Version,
};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location, LogSegmentId};

use crate::backing::{Backing, Piece, Window, bytes_of, damaged, read_pieces};
use crate::error::MountError;
use crate::io::IoFailed;
use crate::layout::Layout;
use crate::limits::BLOCK;
use crate::map::Map;
use crate::map::page::{Entry, PAGE_ENTRIES_U64, first_lba};
use crate::packs::is_in;
use walk::walk;

/// Where a log segment may have batches behind the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) segment: LogSegmentId,
    /// First block to look at ..
    pub(crate) from: u32,
    /// .. and the one behind the last.
    pub(crate) end: u32,
    /// Lowest number of a use that counts.
    pub(crate) epoch_min: u64,
    /// Highest number of a use that counts.
    pub(crate) epoch_max: u64,
}

impl Candidate {
    /// Where its first header is if it has one.
    fn first_header(&self, layout: &Layout) -> Piece {
        Piece { at: u64::from(layout.start_of(self.segment).raw() + self.from), blocks: 1 }
    }
}

/// A batch that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) batch: DecodedBatch,
    pub(crate) start: u32,
}

/// What a replay comes to.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) batches: Vec<Found>,
    /// The last number that counts.
    pub(crate) seq: u64,
    /// The highest number that was known to be durable.
    pub(crate) durable: u64,
    /// Headers that were read.
    pub(crate) headers: u64,
    /// Blocks that were checked.
    pub(crate) checked: u64,
    /// Headers of batches that were found and do not count.
    pub(crate) left_out: LeftOut,
}

/// Headers of batches that do not count, but for those before one that does in their log segment: a batch that was made again
/// elsewhere may lie behind later ones, and is found by the chain that leads over them.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// Of attempts that were made again.
    pub(crate) earlier: Vec<u32>,
    /// Of the last attempts.
    pub(crate) last: Vec<u32>,
}

impl LeftOut {
    /// Erases the headers, so that they never count. The last attempt at a batch goes last: where an opening is cut before that, an earlier
    /// one that is whole must not count in its place.
    pub(crate) fn erase(
        &self,
        backing: &mut dyn Backing,
        layout: &Layout,
    ) -> Result<(), MountError> {
        let failed = |_: IoFailed| MountError::Backing("batches that do not count were erased");
        // In sequential zones they stay behind the write pointer of one that is finished, unless nothing else is there.
        let stays = |at: u32| layout.is_sequential(layout.segment_of(Location::new(at)));
        for at in self.earlier.iter().filter(|at| !stays(**at)) {
            // A write has failed there, and may fail again.
            let _ = backing.write((*at).into(), &[0; BLOCK]);
        }
        if !self.earlier.is_empty() {
            backing.flush().map_err(failed)?;
        }
        for at in self.last.iter().filter(|at| !stays(**at)) {
            backing.write((*at).into(), &[0; BLOCK]).map_err(failed)?;
        }
        Ok(())
    }
}

/// What identifies the batches that count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) uuid: [u8; 16],
    pub(crate) incarnation: u32,
    /// Number of the root.
    pub(crate) seq: u64,
    /// Whether blocks carry bytes that can be checked.
    pub(crate) bytes: bool,
    /// The volume was closed with the root, so nothing comes behind it.
    pub(crate) closed: bool,
}

impl Identity {
    /// Of what was written behind a root.
    pub(crate) const fn behind(root: &Root, uuid: [u8; 16], bytes: bool) -> Self {
        let (incarnation, seq) = (root.incarnation, root.seq.raw());
        Self { uuid, incarnation, seq, bytes, closed: root.clean }
    }
}

/// Finds the batches behind the root that count.
pub(crate) fn find(
    backing: &mut dyn Backing,
    layout: &Layout,
    identity: &Identity,
    candidates: &[Candidate],
) -> Result<Replay, MountError> {
    let mut found: BTreeMap<u64, Found> = BTreeMap::new();
    let mut earlier: Vec<Found> = Vec::new();
    let mut headers = 0;
    let mut durable = identity.seq;
    // Most were not begun, and nothing is read of those but one block.
    let candidates: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.from < candidate.end).collect();
    let pieces: Vec<Piece> = candidates.iter().map(|one| one.first_header(layout)).collect();
    let mut windows = backing.read_all(&pieces).into_iter().zip(&pieces);
    // Log segments are taken in the order of the list, so only the first one of which no header is found can have been begun.
    let mut may_begin = !identity.closed;
    for candidate in candidates {
        let first = layout.start_of(candidate.segment).raw();
        let window =
            windows.next().and_then(|(read, piece)| Some(Window::new(piece.at, read.ok()?)));
        let window = window.unwrap_or_default();
        let look = may_begin || candidate.from > 0;
        let chain = walk(backing, (first, look), identity, (candidate, window), &mut headers)?;
        may_begin &= candidate.from > 0 || !chain.batches.is_empty();
        durable = durable.max(chain.durable_behind);
        for one in chain.batches {
            durable = durable.max(one.batch.header.durable_seq.raw());
            earlier.extend(take(&mut found, one));
        }
    }
    let mut replay = Replay {
        batches: Vec::new(),
        seq: identity.seq,
        durable,
        headers,
        checked: 0,
        left_out: LeftOut::default(),
    };
    let gapless = found.range(identity.seq + 1..).zip(identity.seq + 1..);
    replay.seq += u64_from(gapless.take_while(|((seq, _), expected)| **seq == *expected).count());
    if identity.bytes {
        let doubtful = found.range(durable + 1..).take_while(|(seq, _)| **seq <= replay.seq);
        let doubtful: Vec<&Found> = doubtful.map(|(_, one)| one).collect();
        let (whole, checked) = count_whole(backing, &doubtful)?;
        replay.seq -= u64_from(doubtful.len() - whole);
        replay.checked = checked;
    }
    let behind = found.split_off(&(replay.seq + 1));
    replay.batches = found.split_off(&(identity.seq + 1)).into_values().collect();
    let ends = ends_of(&replay.batches);
    let leads = |one: &Found| ends.get(&one.batch.header.segment) > Some(&one.start);
    earlier.retain(|one| one.batch.header.seq.raw() > replay.seq);
    let left_out = |one: Found| (!leads(&one)).then_some(one.start);
    replay.left_out.earlier = earlier.into_iter().filter_map(left_out).collect();
    replay.left_out.last = behind.into_values().filter_map(left_out).collect();
    Ok(replay)
}

/// Where the last of these batches begins in each log segment.
fn ends_of(batches: &[Found]) -> BTreeMap<LogSegmentId, u32> {
    let mut ends = BTreeMap::new();
    for one in batches {
        let end = ends.entry(one.batch.header.segment).or_insert(one.start);
        *end = one.start.max(*end);
    }
    ends
}

/// Takes a batch that was found; of two attempts at one gives back the earlier.
fn take(found: &mut BTreeMap<u64, Found>, one: Found) -> Option<Found> {
    let header = &one.batch.header;
    let seq = header.seq.raw();
    let later = |other: &Found| other.batch.header.attempt >= header.attempt;
    if found.get(&seq).is_some_and(later) { Some(one) } else { found.insert(seq, one) }
}

/// How many batches, from the first one on, have all blocks as their records say, and how many blocks were checked for that.
fn count_whole(backing: &mut dyn Backing, batches: &[&Found]) -> Result<(usize, u64), MountError> {
    let with_blocks: Vec<_> =
        batches.iter().enumerate().filter(|(_, one)| one.piece().blocks > 0).collect();
    let pieces: Vec<Piece> = with_blocks.iter().map(|(_, one)| one.piece()).collect();
    let (mut whole, mut checked) = (batches.len(), 0);
    read_pieces(backing, &pieces, |n, result| {
        let (place, found) = with_blocks[n];
        if place > whole {
            return Ok(());
        }
        let at = pieces[n].at;
        let buffer = result.map_err(|_| MountError::Read { what: "batch", at })?;
        checked += u64::from(pieces[n].blocks);
        if !found.fits(buffer.bytes()) {
            whole = place;
        }
        Ok(())
    })?;
    Ok((whole, checked))
}

/// Whether all blocks of a batch are as their records say.
pub(crate) fn is_whole(backing: &mut dyn Backing, found: &Found) -> Result<bool, MountError> {
    let piece = found.piece();
    if piece.blocks == 0 {
        return Ok(true);
    }
    let mut bytes = vec![0; bytes_of(piece.blocks)];
    let at = piece.at;
    backing.read(at, &mut bytes).map_err(|_| MountError::Read { what: "batch", at })?;
    Ok(found.fits(&bytes))
}

impl Found {
    /// Where its blocks lie.
    fn piece(&self) -> Piece {
        Piece { at: u64::from(self.start) + 1, blocks: self.batch.data_blocks() }
    }

    /// Whether these are its blocks.
    fn fits(&self, bytes: &[u8]) -> bool {
        if let RecordList::Meta(list) = &self.batch.records {
            return bytes.chunks(BLOCK).zip(list).all(|(block, of)| checksum(block) == of.crc);
        }
        let places = &self.batch.places;
        (0..).zip(self.batch.versions()).all(|(at, one): (usize, Version)| {
            let place = places.get(at);
            // What is in the header was checked with it.
            let Some(block) = place.map_or(at + 1, |place| place.block()).checked_sub(1) else {
                return true;
            };
            // What was dead when the batch was sent need not be there (`crate::volume::cleaner::remap`).
            let there = one.source.is_none_or(Location::is_block);
            let slot = place.map_or(Slot::WHOLE, |place| place.slot);
            let bytes = bytes.get(block * BLOCK..(block + 1) * BLOCK);
            !there || bytes.is_some_and(|bytes| is_in(bytes, slot, one.crc))
        })
    }
}

#[derive(Debug, Default)]
struct OverlayPage {
    /// What the map had before does not count any more.
    gone: bool,
    entries: BTreeMap<u64, Entry>,
}

/// What the replayed batches changed.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// By place of the member, and number.
    pages: BTreeMap<(usize, usize), OverlayPage>,
    /// Members by what their writes are marked with.
    births: BTreeMap<u32, Written>,
}

/// A member that batches write to: its place and its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) slot: usize,
    pub(crate) blocks: u64,
}

impl Overlay {
    pub(crate) const fn new(births: BTreeMap<u32, Written>) -> Self {
        Self { pages: BTreeMap::new(), births }
    }

    /// Applies a batch; batches come in order.
    pub(crate) fn apply(&mut self, found: &Found) -> Result<(), MountError> {
        let stranger = damaged("batch header", Location::new(found.start));
        let stranger = || stranger(BlockError::Malformed("a record of a member that is none"));
        for trim in &found.batch.trims {
            let of = *self.births.get(&trim.birth).ok_or_else(stranger)?;
            self.trim(of, trim.lba.raw(), trim.lba.raw().saturating_add(trim.blocks));
        }
        // Invariant 4.
        let written = found.batch.located(found.start).filter(|(_, one)| one.source.is_none());
        for (at, record) in written {
            let Written { slot, blocks } = *self.births.get(&record.birth).ok_or_else(stranger)?;
            if record.lba.raw() >= blocks {
                return Err(stranger());
            }
            self.set(slot, record.lba, Entry { at, crc: record.crc });
        }
        Ok(())
    }

    fn set(&mut self, slot: usize, lba: Lba, entry: Entry) {
        let page = (slot, Map::place(lba).0);
        self.pages.entry(page).or_default().entries.insert(lba.raw(), entry);
    }

    fn trim(&mut self, of: Written, from: u64, end: u64) {
        let Written { slot, blocks } = of;
        let (mut at, end) = (from, end.min(blocks));
        while at < end {
            let page = Map::place(Lba::new(at)).0;
            let first = first_lba(page).raw();
            let page_end = first + PAGE_ENTRIES_U64;
            if at == first && end >= page_end.min(blocks) {
                let gone = OverlayPage { gone: true, entries: BTreeMap::new() };
                self.pages.insert((slot, page), gone);
            } else {
                for lba in at..end.min(page_end) {
                    self.set(slot, Lba::new(lba), Entry::UNMAPPED);
                }
            }
            at = page_end;
        }
    }

    /// The pages that changed, with the places of their members.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pages.keys().copied()
    }

    /// The records of a run with these changes, for each member.
    pub(crate) fn records(&self) -> Vec<(usize, Vec<RunRecord>)> {
        let mut all: Vec<(usize, Vec<RunRecord>)> = Vec::new();
        for ((slot, page), changes) in &self.pages {
            if all.last().is_none_or(|(last, _)| last != slot) {
                all.push((*slot, Vec::new()));
            }
            let Some((_, records)) = all.last_mut() else { continue };
            let first = first_lba(*page);
            if changes.gone && changes.entries.is_empty() {
                records.push(RunRecord::page_gone(first));
                continue;
            }
            let lbas = if changes.gone {
                (first.raw()..first.raw() + PAGE_ENTRIES_U64).collect::<Vec<_>>()
            } else {
                changes.entries.keys().copied().collect()
            };
            for lba in lbas {
                let entry = changes.entries.get(&lba).copied().unwrap_or(Entry::UNMAPPED);
                let lba = Lba::new(lba);
                records.push(RunRecord { lba, birth: 0, location: entry.at, crc: entry.crc });
            }
        }
        all
    }
}
