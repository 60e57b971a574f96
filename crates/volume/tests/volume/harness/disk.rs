//! A backing with a volatile cache.
//!
//! A write, trim or remap is durable when a flush completes that began after it completed. At a power cut each other one,
//! those under way included, happens as a whole, in part (sector by sector; a trim or remap block by block), or not at all. On
//! zones what happens of the changes of one zone is the first of them, the last one in part (the first of its blocks): the write
//! pointer falls back to any point between the last flushed and the last written block, and resets and finishes may be lost. Conventional
//! zones are like space without zones.

use std::collections::BTreeSet;
use std::rc::Rc;

use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Rng, ZoneId, ZoneState};
use onefold_volume::{Backing, IoFailed, Relocation, ZoneReport};

use super::image::{Block, Image, block};
use super::stamp::{BLOCK, SECTOR};

/// What a trimmed block reads as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trimmed {
    Old,
    Zeroes,
    Garbage,
}

impl Trimmed {
    /// What is in the place of each block then; one for all of them, as there are many. `None`: what was there.
    fn left(self) -> Option<Block> {
        match self {
            Self::Old => None,
            Self::Zeroes => Some(Rc::new([0; BLOCK])),
            Self::Garbage => Some(Rc::new([0xDD; BLOCK])),
        }
    }
}

/// What becomes of a change at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Torn,
    Whole,
}

#[derive(Clone)]
enum What {
    Write(Vec<Block>),
    Trim(u64),
    /// Where, and blocks as their sources were when it began.
    Remap(Vec<(u64, Block)>),
    /// Of a zone.
    Reset(u32),
    Finish(u32),
}

/// A write, trim or remap that is not durable.
#[derive(Clone)]
pub(crate) struct Change {
    id: u64,
    at: u64,
    what: What,
    complete: bool,
}

#[derive(Clone)]
pub(crate) struct Disk {
    durable: Image,
    view: Image,
    changes: Vec<Change>,
    next: u64,
    pub(crate) trimmed: Trimmed,
    /// Of a write to a zone that fails the last block that is written is another one.
    pub(crate) garbles: bool,
    /// Flushes are reported done and do nothing.
    pub(crate) drops_flushes: bool,
    /// Requests until power fails, for what uses it as a [`Backing`].
    pub(crate) fuse: Option<u64>,
    dead: bool,
    /// The request that fails, for the same.
    pub(crate) fails: Option<u64>,
    /// Requests it answered as a [`Backing`].
    pub(crate) requests: u64,
    /// How many of them there were when the first flush was over.
    pub(crate) first_flush: Option<u64>,
    /// Those before the first change.
    pub(crate) unchanged: Option<u64>,
}

fn apply(image: &mut Image, change: &Change, trimmed: Trimmed) {
    if image.zones.as_ref().is_some_and(|zones| zones.is_offline(zones.zone_of(change.at))) {
        return;
    }
    match &change.what {
        What::Write(blocks) => {
            for (at, block) in (change.at..).zip(blocks) {
                image.set(at, block.clone());
            }
            if let Some(zones) = &mut image.zones
                && zones.is_sequential_at(change.at)
            {
                zones.advance(change.at, u64_from(blocks.len()));
            }
        }
        What::Remap(blocks) => {
            for (at, block) in blocks {
                image.set(*at, block.clone());
            }
        }
        What::Reset(zone) => {
            let zones = image.zones.as_mut().expect("a backing with zones");
            zones.reset(*zone);
            let blank = Rc::new([0; BLOCK]);
            for at in zones.blocks(*zone) {
                image.set(at, Rc::clone(&blank));
            }
        }
        What::Finish(zone) => {
            image.zones.as_mut().expect("a backing with zones").finish(*zone);
        }
        What::Trim(blocks) => {
            let Some(left) = trimmed.left() else { return };
            for at in change.at..change.at + blocks {
                image.set(at, Rc::clone(&left));
            }
        }
    }
}

/// Whether a block lies in a zone with a write pointer.
fn is_sequential(image: &Image, at: u64) -> bool {
    image.zones.as_ref().is_some_and(|zones| zones.is_sequential_at(at))
}

/// Some sectors or remapped blocks are new: any, or those before some point.
fn tear(image: &mut Image, change: &Change, trimmed: Trimmed, rng: &mut Rng) {
    match &change.what {
        What::Write(blocks) if is_sequential(image, change.at) => {
            let some = index64(rng.below(u64_from(blocks.len())));
            if some > 0 {
                let what = What::Write(blocks[..some].to_vec());
                apply(image, &Change { what, ..change.clone() }, trimmed);
            }
        }
        What::Reset(_) | What::Finish(_) => {}
        What::Write(blocks) => {
            let sectors = u64_from(blocks.len() * (BLOCK / SECTOR));
            let in_order = rng.below(2) == 0;
            let point = 1 + rng.below(sectors - 1);
            for (n, new) in (0..).zip(blocks) {
                let mut bytes = **image.get(change.at + n);
                for sector in 0..BLOCK / SECTOR {
                    let global = n * u64_from(BLOCK / SECTOR) + u64_from(sector);
                    if if in_order { global < point } else { rng.below(2) == 0 } {
                        let range = sector * SECTOR..(sector + 1) * SECTOR;
                        bytes[range.clone()].copy_from_slice(&new[range]);
                    }
                }
                image.set(change.at + n, Rc::new(bytes));
            }
        }
        What::Trim(blocks) => {
            let left = trimmed.left();
            for at in change.at..change.at + blocks {
                if rng.below(2) == 0
                    && let Some(left) = &left
                {
                    image.set(at, Rc::clone(left));
                }
            }
        }
        What::Remap(blocks) => {
            let in_order = rng.below(2) == 0;
            let point = rng.below(u64_from(blocks.len()).max(1));
            for (n, (at, block)) in (0..).zip(blocks) {
                if if in_order { n < point } else { rng.below(2) == 0 } {
                    image.set(*at, block.clone());
                }
            }
        }
    }
}

impl Disk {
    pub(crate) fn new(image: Image) -> Self {
        Self {
            durable: image.clone(),
            view: image,
            changes: Vec::new(),
            next: 0,
            trimmed: Trimmed::Garbage,
            garbles: false,
            drops_flushes: false,
            fuse: None,
            dead: false,
            fails: None,
            requests: 0,
            first_flush: None,
            unchanged: None,
        }
    }

    /// What reads find.
    pub(crate) fn view(&self) -> &Image {
        &self.view
    }

    pub(crate) fn get(&self, at: u64) -> &Block {
        self.view.get(at)
    }

    fn begin(&mut self, at: u64, what: What) -> u64 {
        let id = self.next;
        self.next += 1;
        self.unchanged.get_or_insert(self.requests);
        self.changes.push(Change { id, at, what, complete: false });
        id
    }

    pub(crate) fn begin_write(&mut self, at: u64, bytes: &[u8]) -> u64 {
        if let Some(zones) = &self.view.zones
            && !zones.is_sequential_at(at)
        {
            let end = zones.blocks(zones.zone_of(at)).end;
            assert!(at + u64_from(bytes.len() / BLOCK) <= end, "a write over the end of a zone");
        } else if let Some(zones) = &self.view.zones {
            self.assert_zone_rests(zones.zone_of(at));
            let opening = self.changes.iter().filter(|change| opens(zones, change)).count();
            zones.check_write(at, u64_from(bytes.len() / BLOCK), opening);
        }
        self.begin(at, What::Write(bytes.chunks(BLOCK).map(block).collect()))
    }

    /// Nothing else is under way in a zone.
    fn assert_zone_rests(&self, zone: u32) {
        let zones = self.view.zones.as_ref().expect("a backing with zones");
        let busy = |change: &Change| !change.complete && zones.zone_of(change.at) == zone;
        assert!(!self.changes.iter().any(busy), "two changes of zone {zone} are under way");
    }

    pub(crate) fn begin_reset(&mut self, zone: u32) -> u64 {
        self.assert_zone_rests(zone);
        let zones = self.view.zones.as_ref().expect("a backing with zones");
        assert!(zones.is_writable(zone), "a reset of zone {zone}, which failed");
        self.begin(zones.blocks(zone).start, What::Reset(zone))
    }

    pub(crate) fn begin_finish(&mut self, zone: u32) -> u64 {
        self.assert_zone_rests(zone);
        let zones = self.view.zones.as_ref().expect("a backing with zones");
        self.begin(zones.blocks(zone).start, What::Finish(zone))
    }

    /// A zone fails for good. What was in one that is offline is gone.
    pub(crate) fn fail_zone(&mut self, zone: u32, state: ZoneState) {
        for image in [&mut self.view, &mut self.durable] {
            fail_zone(image, zone, state);
        }
    }

    /// Whether the backing refuses a request over these blocks because of their zone.
    pub(crate) fn refuses(&self, at: u64, reads: bool) -> bool {
        let Some(zones) = &self.view.zones else { return false };
        let zone = zones.zone_of(at);
        if reads { zones.is_offline(zone) } else { !zones.is_writable(zone) }
    }

    /// Whether a block lies in a zone with a write pointer.
    pub(crate) fn is_sequential(&self, at: u64) -> bool {
        is_sequential(&self.view, at)
    }

    /// Whether a write there makes more zones active than there may be.
    pub(crate) fn exceeds(&self, at: u64) -> bool {
        let Some(zones) = &self.view.zones else { return false };
        let opening = self.changes.iter().filter(|change| opens(zones, change)).count();
        zones.is_sequential_at(at) && zones.exceeds(at, opening)
    }

    pub(crate) fn begin_trim(&mut self, at: u64, blocks: u64) -> u64 {
        assert!(!is_sequential(&self.view, at), "a trim of a zone that has to be reset");
        self.begin(at, What::Trim(blocks))
    }

    pub(crate) fn begin_remap(&mut self, list: &[Relocation]) -> u64 {
        let mut blocks = Vec::new();
        for Relocation { to, from, blocks: count } in list {
            let pairs = (u64::from(to.raw())..).zip(u64::from(from.raw())..).take(index(*count));
            blocks.extend(pairs.map(|(to, from)| (to, self.view.get(from).clone())));
        }
        let first = list.first().map_or(0, |one| one.to.raw());
        self.begin(first.into(), What::Remap(blocks))
    }

    /// A write, trim or remap is done: reads find it.
    pub(crate) fn complete(&mut self, id: u64) {
        let change =
            self.changes.iter_mut().find(|change| change.id == id).expect("a change under way");
        change.complete = true;
        apply(&mut self.view, change, self.trimmed);
    }

    /// A write, trim or remap fails, and may leave anything in its place.
    pub(crate) fn fail(&mut self, id: u64, fate: Fate, rng: &mut Rng) {
        let at =
            self.changes.iter().position(|change| change.id == id).expect("a change under way");
        if is_sequential(&self.view, self.changes[at].at) {
            // Behind what is not durable in its zone.
            match (fate, &mut self.changes[at].what) {
                (Fate::Torn, What::Write(blocks)) if blocks.len() > 1 => {
                    blocks.truncate(1 + index64(rng.below(u64_from(blocks.len() - 1))));
                }
                (Fate::Whole, _) => {}
                _ => return drop(self.changes.remove(at)),
            }
            if self.garbles
                && let What::Write(blocks) = &mut self.changes[at].what
                && let Some(last) = blocks.last_mut()
            {
                *last = Rc::new([0x99; BLOCK]);
            }
            self.complete(id);
            return;
        }
        let change = self.changes.remove(at);
        for image in [&mut self.view, &mut self.durable] {
            let mut rng = rng.clone();
            happen(image, &change, fate, self.trimmed, &mut rng);
        }
        rng.next_u64();
    }

    /// What a flush that begins now makes durable.
    pub(crate) fn begin_flush(&self) -> Vec<u64> {
        let complete = self.changes.iter().filter(|change| change.complete);
        complete.map(|change| change.id).collect()
    }

    pub(crate) fn end_flush(&mut self, covered: &[u64]) {
        if self.drops_flushes {
            return;
        }
        for change in
            self.changes.extract_if(.., |change| covered.binary_search(&change.id).is_ok())
        {
            apply(&mut self.durable, &change, self.trimmed);
        }
    }

    /// Somebody else writes from a block on.
    pub(crate) fn scribble(&mut self, from: u64) {
        let garbage = Rc::new([0x99; BLOCK]);
        for at in from..self.view.blocks() {
            self.view.set(at, Rc::clone(&garbage));
            self.durable.set(at, Rc::clone(&garbage));
        }
    }

    /// Changes that a power cut now may undo.
    pub(crate) fn volatile(&self) -> usize {
        self.changes.len()
    }

    /// Whether a remap is among them.
    pub(crate) fn has_volatile_remap(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.what, What::Remap(_)))
    }

    /// What a power cut leaves, if `fate` decides about each change.
    pub(crate) fn cut(
        &self,
        rng: &mut Rng,
        mut fate: impl FnMut(usize, &mut Rng) -> Fate,
    ) -> Image {
        let mut image = self.durable.clone();
        // Zones whose later changes do not happen.
        let mut stopped = BTreeSet::new();
        for (n, change) in self.changes.iter().enumerate() {
            let fate = fate(n, rng);
            if let Some(zones) = &image.zones
                && zones.is_sequential_at(change.at)
            {
                let zone = zones.zone_of(change.at);
                if stopped.contains(&zone) {
                    continue;
                }
                if fate != Fate::Whole {
                    stopped.insert(zone);
                }
            }
            happen(&mut image, change, fate, self.trimmed, rng);
        }
        image
    }

    /// What a power cut leaves, at random.
    pub(crate) fn random_cut(&self, rng: &mut Rng) -> Image {
        let kind = rng.below(5);
        let last = u64_from(self.changes.len().saturating_sub(1));
        self.cut(rng, |n, rng| match kind {
            0 => Fate::Lost,
            // What came late is rather lost.
            2 if rng.below(last + 1) < u64_from(n) => Fate::Lost,
            1 | 2 => Fate::Whole,
            _ => [Fate::Lost, Fate::Torn, Fate::Whole][index64(rng.below(3))],
        })
    }

    /// What a power cut leaves that takes one change and no other.
    pub(crate) fn cut_without_one(&self, rng: &mut Rng) -> Image {
        let lost = index64(rng.below(u64_from(self.changes.len()).max(1)));
        self.cut(rng, |n, _| if n == lost { Fate::Lost } else { Fate::Whole })
    }

    /// A change is carried out, or fails without that. One that lost power is under way.
    fn end(&mut self, id: u64) -> Result<(), IoFailed> {
        match self.tick() {
            Ok(()) => self.complete(id),
            Err(why) => {
                self.changes.retain(|change| self.dead || change.id != id);
                return Err(why);
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), IoFailed> {
        match &mut self.fuse {
            Some(0) => {
                self.dead = true;
                return Err(IoFailed::Error);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.requests += 1;
        if self.fails == Some(self.requests - 1) { Err(IoFailed::Error) } else { Ok(()) }
    }
}

fn happen(image: &mut Image, change: &Change, fate: Fate, trimmed: Trimmed, rng: &mut Rng) {
    match fate {
        Fate::Lost => {}
        Fate::Torn => tear(image, change, trimmed, rng),
        Fate::Whole => apply(image, change, trimmed),
    }
}

/// A zone of an image fails for good.
pub(crate) fn fail_zone(image: &mut Image, zone: u32, state: ZoneState) {
    let zones = image.zones.as_mut().expect("a backing with zones");
    zones.fail(zone, state);
    if state == ZoneState::Offline {
        let garbage = Rc::new([0xBD; BLOCK]);
        for at in zones.blocks(zone) {
            image.set(at, Rc::clone(&garbage));
        }
    }
}

impl Backing for Disk {
    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        Ok(self.view.zones.as_ref().map(super::zones::Zones::report))
    }

    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        if self.dead {
            return Err(IoFailed::Error);
        }
        let id = self.begin_reset(zone.raw());
        self.end(id)
    }

    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        if self.dead {
            return Err(IoFailed::Error);
        }
        let id = self.begin_finish(zone.raw());
        self.end(id)
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.tick()?;
        if self.refuses(at, true) {
            return Err(IoFailed::Error);
        }
        for (at, bytes) in (at..).zip(bytes.chunks_mut(BLOCK)) {
            bytes.copy_from_slice(&self.view.get(at)[..]);
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        if self.dead || self.refuses(at, false) {
            return Err(IoFailed::Error);
        }
        let id = self.begin_write(at, bytes);
        self.end(id)
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        self.tick()?;
        let covered = self.begin_flush();
        self.end_flush(&covered);
        self.first_flush.get_or_insert(self.requests);
        Ok(())
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        if self.dead {
            return Err(IoFailed::Error);
        }
        let id = self.begin_trim(at, blocks);
        self.end(id)
    }

    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        if self.dead {
            return Err(IoFailed::Error);
        }
        let id = self.begin_remap(list);
        self.end(id)
    }
}

/// Whether a change under way makes a zone active.
fn opens(zones: &super::zones::Zones, change: &Change) -> bool {
    let zone = zones.zone_of(change.at);
    let writes = matches!(change.what, What::Write(_));
    writes && !change.complete && zones.state(zone) == ZoneState::Empty
}
