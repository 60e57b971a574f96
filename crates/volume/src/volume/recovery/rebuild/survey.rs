//! Looking for every batch on a backing, without a root that says where.
//!
//! 1. A log segment holds the batches of one use of it, from its first block on and without gaps. What lies behind them and
//!    is of another use is older: it was given back, so nothing of it is live.
//! 2. A header that is damaged hides its batch. The chain goes on with the next header of the same use, as far on as a batch
//!    reaches; such a one counts only if its opening knew it durable. What a power cut left behind a gap never counted.
//! 3. Numbers were given out again from where an opening ended: what is left of an opening counts below the first number of
//!    each later one.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::volume::{BatchHeader, DecodedBatch, MetaKind, RecordList};
use onefold_units::convert::u32_from;
use onefold_units::{Location, LogSegmentId, ZoneState};

use crate::backing::{Backing, read_block};
use crate::config::BATCH_BLOCKS_MAX;
use crate::layout::Layout;
use crate::log::Stream;
use crate::recovery::replay::Found;
use crate::zones::ZoneReport;

/// Numbers that no volume gets to: they leave room for those that follow.
pub(super) const NUMBERS_MAX: u64 = 1 << 62;

/// A batch that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) header: BatchHeader,
    /// Where the header lies.
    pub(super) start: u32,
    /// Its blocks of data or metadata.
    pub(super) blocks: u32,
    /// Its own opening knew that it is durable.
    pub(super) is_durable: bool,
    /// It was found behind a header that is damaged.
    behind_gap: bool,
    /// Blocks between that header and it.
    hidden: u32,
    /// One with a lower number lies behind it in its log segment: an opening that left it out did not erase it (`crate::recovery::replay`).
    leads: bool,
}

impl Survey {
    /// The highest number that an opening knew to be durable.
    pub(super) fn durable_by(&self, incarnation: u32) -> u64 {
        self.durable.get(&incarnation).copied().unwrap_or(0)
    }

    /// The highest number that was known to be durable in an opening or before.
    pub(super) fn durable_in(&self, incarnation: u32) -> u64 {
        self.durable.range(..=incarnation).map(|(_, durable)| *durable).max().unwrap_or(0)
    }
}

/// How far the openings got, as batches are looked at in order.
pub(super) struct Ends<'a> {
    survey: &'a Survey,
    zoned: bool,
    /// The incarnation at hand, and up to which number the next opening found its batches at least.
    end: (u32, u64),
}

impl Survey {
    pub(super) const fn ends(&self, layout: &Layout) -> Ends<'_> {
        Ends { survey: self, zoned: layout.is_zoned(), end: (0, 0) }
    }
}

impl Ends<'_> {
    /// Whether a whole batch counted for the opening after it. On zones, and where an older one lies behind it, what that left out is still
    /// there, and the first number that it gave out itself may be gone; what has no gap before it was not left out.
    pub(super) fn surely_counts(&mut self, seen: &Seen) -> bool {
        let incarnation = seen.header.incarnation;
        let end = if self.end.0 == incarnation { self.end.1 } else { 0 };
        let follows =
            seen.is_durable || seen.seq() == end.max(self.survey.durable_by(incarnation)) + 1;
        if follows {
            self.end = (incarnation, seen.seq());
        }
        let stays = self.zoned || seen.leads;
        follows || !stays || incarnation == self.survey.incarnation
    }
}

impl Seen {
    pub(super) const fn seq(&self) -> u64 {
        self.header.seq.raw()
    }

    pub(super) fn is_meta(&self) -> bool {
        self.header.stream == Stream::Meta.code()
    }
}

/// The blocks of the body of one checkpoint, in order.
#[derive(Clone, Debug)]
pub(super) struct BodyAt {
    pub(super) incarnation: u32,
    /// Number of its last batch.
    pub(super) seq: u64,
    pub(super) blocks: Vec<Location>,
}

/// All that was found.
#[derive(Debug)]
pub(super) struct Survey {
    /// In order of their numbers.
    pub(super) batches: Vec<Seen>,
    /// Oldest first.
    pub(super) bodies: Vec<BodyAt>,
    /// Log segments whose last batch is followed by something that is none.
    pub(super) ragged: BTreeSet<LogSegmentId>,
    /// Log segments with any header, those that do not count as well.
    pub(super) used: BTreeSet<LogSegmentId>,
    /// By incarnation: the highest number that was known to be durable.
    durable: BTreeMap<u32, u64>,
    /// The highest number of all headers, those that do not count as well.
    pub(super) last: u64,
    /// The highest number of a use of a log segment.
    pub(super) epoch: u64,
    /// The highest incarnation.
    pub(super) incarnation: u32,
    /// Blocks behind headers that are damaged, at most.
    pub(super) hidden: u64,
    /// A zone of the log is offline: the last batches of all may have been there, which no gap in the numbers shows.
    pub(super) offline: bool,
}

/// A block of a body: its batch, place and index.
type Part = ((u32, u64), Location, u64);

struct Scan<'a> {
    backing: &'a mut dyn Backing,
    layout: &'a Layout,
    uuid: [u8; 16],
    seen: Vec<Seen>,
    parts: Vec<Part>,
    ragged: BTreeSet<LogSegmentId>,
}

/// Looks at every log segment.
pub(super) fn survey(
    backing: &mut dyn Backing,
    layout: &Layout,
    zones: Option<&ZoneReport>,
    uuid: [u8; 16],
) -> Survey {
    let (seen, parts, ragged) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut scan = Scan { backing, layout, uuid, seen, parts, ragged };
    for segment in 0..layout.segments() {
        if !layout.fixed().contains(&segment) {
            // Behind its write pointer a zone holds nothing.
            let blocks = layout.geometry().segment_blocks;
            let end = zones.map_or(blocks, |zones| zones.status(segment).end().min(blocks));
            let from = scan.seen.len();
            scan.chain(LogSegmentId::new(segment), end);
            note_leads(&mut scan.seen[from..]);
        }
    }
    let Scan { seen, mut parts, ragged, .. } = scan;
    let most = |of: fn(&Seen) -> u64| seen.iter().map(of).max().unwrap_or(0);
    let (last, epoch) = (most(Seen::seq), most(|one| one.header.epoch));
    let incarnation = seen.iter().map(|one| one.header.incarnation).max().unwrap_or(0);
    parts.sort_unstable();
    let used = seen.iter().map(|one| one.header.segment).collect();
    let openings = openings(&seen);
    let batches = those_that_count(seen, &openings);
    let durable = openings.into_iter().map(|(one, (_, durable))| (one, durable)).collect();
    let hidden = batches.iter().map(|one| u64::from(one.hidden)).sum();
    let bodies = bodies(&parts);
    let is_offline =
        |zone| zones.is_some_and(|zones| zones.status(zone).state == ZoneState::Offline);
    let offline =
        (0..layout.segments()).filter(|zone| !layout.fixed().contains(zone)).any(is_offline);
    Survey { batches, bodies, ragged, used, durable, last, epoch, incarnation, hidden, offline }
}

/// Notes which batches of a log segment have older ones behind them.
fn note_leads(chain: &mut [Seen]) {
    let mut least = u64::MAX;
    for one in chain.iter_mut().rev() {
        one.leads = one.seq() > least;
        least = least.min(one.seq());
    }
}

/// A block of a backing that is a header of a log segment.
pub(super) fn header_at(
    backing: &mut dyn Backing,
    uuid: &[u8; 16],
    at: u32,
) -> Option<DecodedBatch> {
    // A block that cannot be read is as good as a damaged one.
    let block = read_block(backing, at.into()).ok()?;
    BatchHeader::decode(&block[..], uuid, at.into()).ok()
}

/// The batch of a header that was found before, if it is still there.
pub(super) fn batch_at(backing: &mut dyn Backing, uuid: &[u8; 16], seen: &Seen) -> Option<Found> {
    let batch = header_at(backing, uuid, seen.start)?;
    Some(Found { batch, start: seen.start })
}

impl Scan<'_> {
    /// Invariants 1 and 2.
    fn chain(&mut self, segment: LogSegmentId, end: u32) {
        let blocks = self.layout.geometry().segment_blocks;
        let first = self.layout.start_of(segment).raw();
        let (mut at, mut epoch, mut behind_gap, mut hidden) = (0, None, false, 0);
        while at < end {
            if let Some(batch) = self.header(segment, first + at, epoch)
                && batch.blocks() <= blocks - at
            {
                epoch = Some(batch.header.epoch);
                at += batch.blocks();
                let start = first + at - batch.blocks();
                self.note(&batch, start, (behind_gap, std::mem::take(&mut hidden)));
                continue;
            }
            let reach = end.min(at + BATCH_BLOCKS_MAX + 1);
            let next = (at + 1..reach).find(|at| self.header(segment, first + at, epoch).is_some());
            let Some(next) = next else {
                let blank = read_block(self.backing, u64::from(first + at));
                if !blank.is_ok_and(|block| block.iter().all(|byte| *byte == 0)) {
                    self.ragged.insert(segment);
                }
                return;
            };
            hidden = next - at - 1;
            (at, behind_gap) = (next, true);
        }
    }

    fn header(
        &mut self,
        segment: LogSegmentId,
        at: u32,
        epoch: Option<u64>,
    ) -> Option<DecodedBatch> {
        let batch = header_at(self.backing, &self.uuid, at)?;
        let header = &batch.header;
        let same = header.segment == segment && epoch.is_none_or(|epoch| epoch == header.epoch);
        let numbers = [header.seq.raw(), header.epoch, header.durable_seq.raw()];
        let possible =
            header.incarnation < u32::MAX && numbers.iter().all(|one| *one < NUMBERS_MAX);
        (same && possible).then_some(batch)
    }

    fn note(&mut self, batch: &DecodedBatch, start: u32, (behind_gap, hidden): (bool, u32)) {
        let header = batch.header;
        self.seen.push(Seen {
            header,
            start,
            blocks: batch.data_blocks(),
            is_durable: false,
            behind_gap,
            hidden,
            leads: false,
        });
        let RecordList::Meta(list) = &batch.records else { return };
        let of = (header.incarnation, header.seq.raw());
        for (at, record) in (start + 1..).map(Location::new).zip(list) {
            if record.kind == MetaKind::Body {
                self.parts.push((of, at, record.object));
            }
        }
    }
}

/// By incarnation: the first number, and the highest that was known to be durable.
fn openings(seen: &[Seen]) -> BTreeMap<u32, (u64, u64)> {
    let mut openings: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for one in seen {
        let (first, durable) = openings.entry(one.header.incarnation).or_insert((u64::MAX, 0));
        *first = one.seq().min(*first);
        *durable = one.header.durable_seq.raw().max(*durable);
    }
    openings
}

/// Invariants 2 and 3; and of several attempts at one batch the last.
fn those_that_count(seen: Vec<Seen>, openings: &BTreeMap<u32, (u64, u64)>) -> Vec<Seen> {
    let ends = |incarnation: u32| {
        let later = openings.range(incarnation.saturating_add(1)..).map(|(_, (first, _))| *first);
        later.min().unwrap_or(u64::MAX)
    };
    let ends: BTreeMap<u32, u64> = openings.keys().map(|one| (*one, ends(*one))).collect();
    let mut newest: BTreeMap<u64, Seen> = BTreeMap::new();
    for mut one in seen {
        let incarnation = one.header.incarnation;
        one.is_durable = one.seq() <= openings[&incarnation].1;
        let counts = one.seq() < ends[&incarnation] && (!one.behind_gap || one.is_durable);
        let later =
            newest.get(&one.seq()).is_none_or(|old| old.header.attempt < one.header.attempt);
        if counts && later {
            newest.insert(one.seq(), one);
        }
    }
    newest.into_values().collect()
}

/// Blocks of bodies, in order: each begins with the block of index 0.
fn bodies(parts: &[Part]) -> Vec<BodyAt> {
    let mut bodies: Vec<BodyAt> = Vec::new();
    for ((incarnation, seq), at, index) in parts {
        let goes_on = |body: &&mut BodyAt| {
            body.incarnation == *incarnation && u64::from(u32_from(body.blocks.len())) == *index
        };
        match bodies.last_mut().filter(goes_on) {
            Some(body) => {
                body.blocks.push(*at);
                body.seq = *seq;
            }
            None => {
                bodies.push(BodyAt { incarnation: *incarnation, seq: *seq, blocks: vec![*at] });
            }
        }
    }
    bodies
}
