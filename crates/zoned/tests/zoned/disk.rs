//! A device with a volatile cache and zones that are written at their write pointer or not at all.
//!
//! A write or reset is durable when a flush completes that began after it completed. At a power cut each other write to a
//! conventional zone happens, block by block, or not; of those to a sequential zone, resets among them, the first few happen, up
//! to any block (zoned.md, section 2).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use onefold_units::Rng;
use onefold_units::convert::{index, index64, u32_from, u64_from};
use onefold_zoned::{Backing, Condition, DeviceZones, IoFailed, ZoneReport};

pub(crate) const BLOCK: usize = 4096;
pub(crate) type Block = Rc<[u8; BLOCK]>;

#[derive(Clone)]
enum What {
    Write(Vec<Block>),
    Reset,
}

#[derive(Clone)]
struct Change {
    id: u64,
    at: u64,
    what: What,
    complete: bool,
}

/// What is on it: blocks that were written, and write pointers of sequential zones.
#[derive(Clone, Default)]
struct State {
    blocks: BTreeMap<u64, Block>,
    written: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) flushes: u64,
    pub(crate) resets: u64,
}

#[derive(Clone)]
pub(crate) struct Device {
    zone_blocks: u32,
    zones: DeviceZones,
    durable: State,
    view: State,
    changes: Vec<Change>,
    next: u64,
    pub(crate) counters: Counters,
    /// Flushes are reported done and do nothing.
    pub(crate) drops_flushes: bool,
    /// Sequential zones that are out of service.
    pub(crate) offline: BTreeSet<usize>,
}

impl Device {
    fn new(zone_blocks: u32, zones: DeviceZones) -> Self {
        let state = State { blocks: BTreeMap::new(), written: vec![0; index(zones.sequential)] };
        Self {
            zone_blocks,
            zones,
            durable: state.clone(),
            view: state,
            changes: Vec::new(),
            next: 0,
            counters: Counters::default(),
            drops_flushes: false,
            offline: BTreeSet::new(),
        }
    }

    /// The sequential zone of a block.
    fn zone_of(&self, at: u64) -> Option<usize> {
        let zone = at / u64::from(self.zone_blocks);
        zone.checked_sub(u64::from(self.zones.conventional)).map(index64)
    }

    fn start_of(&self, zone: usize) -> u64 {
        (u64::from(self.zones.conventional) + u64_from(zone)) * u64::from(self.zone_blocks)
    }

    /// Applies the first `limit` blocks of a change.
    fn apply(&self, state: &mut State, change: &Change, limit: usize) {
        match &change.what {
            What::Write(blocks) => {
                for (at, block) in (change.at..).zip(blocks.iter().take(limit)) {
                    state.blocks.insert(at, Rc::clone(block));
                }
                if let Some(zone) = self.zone_of(change.at) {
                    state.written[zone] += u32_from(blocks.len().min(limit));
                }
            }
            What::Reset => {
                let zone = self.zone_of(change.at).expect("a sequential zone");
                let start = self.start_of(zone);
                for at in start..start + u64::from(self.zone_blocks) {
                    state.blocks.remove(&at);
                }
                state.written[zone] = 0;
            }
        }
    }

    fn begin(&mut self, at: u64, what: What) -> u64 {
        let id = self.next;
        self.next += 1;
        let change = Change { id, at, what, complete: false };
        let mut view = std::mem::take(&mut self.view);
        self.apply(&mut view, &change, usize::MAX);
        self.view = view;
        self.changes.push(change);
        id
    }

    /// A write arrives; panics if its zone does not allow it.
    pub(crate) fn begin_write(&mut self, at: u64, bytes: &[u8]) -> u64 {
        let blocks: Vec<Block> =
            bytes.chunks(BLOCK).map(|block| Rc::new(block.try_into().expect("whole"))).collect();
        let (count, within) = (u64_from(blocks.len()), at % u64::from(self.zone_blocks));
        assert!(count > 0 && within + count <= u64::from(self.zone_blocks), "Zone Boundary Error");
        let zones = self.zones.conventional + self.zones.sequential;
        assert!(at / u64::from(self.zone_blocks) < u64::from(zones), "LBA Out of Range");
        if let Some(zone) = self.zone_of(at) {
            let written = u64::from(self.view.written[zone]);
            assert_eq!(within, written, "Zone Invalid Write to zone {zone}");
        }
        self.counters.written += count;
        self.begin(at, What::Write(blocks))
    }

    /// Whether a write of so many blocks begins at the write pointer of its zone.
    pub(crate) fn takes(&self, at: u64) -> bool {
        let within = at % u64::from(self.zone_blocks);
        self.zone_of(at).is_none_or(|zone| u64::from(self.view.written[zone]) == within)
    }

    /// A flush failed: what it would have made durable is in no cache any more, though it is read until the power fails.
    pub(crate) fn lose(&mut self, covered: &[u64]) {
        let changes = std::mem::take(&mut self.changes);
        let is_lost =
            |change: &Change| covered.contains(&change.id) && self.zone_of(change.at).is_none();
        self.changes = changes.into_iter().filter(|change| !is_lost(change)).collect();
    }

    pub(crate) fn begin_reset(&mut self, at: u64) -> u64 {
        assert!(self.zone_of(at).is_some() && at.is_multiple_of(u64::from(self.zone_blocks)));
        self.counters.resets += 1;
        self.begin(at, What::Reset)
    }

    pub(crate) fn complete(&mut self, id: u64) {
        let change = self.changes.iter_mut().find(|change| change.id == id);
        if let Some(change) = change {
            change.complete = true;
        }
    }

    /// What a flush that begins now makes durable.
    pub(crate) fn begin_flush(&mut self) -> Vec<u64> {
        self.counters.flushes += 1;
        self.changes.iter().filter(|change| change.complete).map(|change| change.id).collect()
    }

    pub(crate) fn end_flush(&mut self, covered: &[u64]) {
        if self.drops_flushes {
            return;
        }
        // What is durable in a sequential zone is a prefix of what was written to it.
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        for change in self.changes.iter().filter(|change| covered.contains(&change.id)) {
            if let Some(zone) = self.zone_of(change.at) {
                last.insert(zone, change.id);
            }
        }
        let (now, later): (Vec<Change>, Vec<Change>) =
            std::mem::take(&mut self.changes).into_iter().partition(|change| {
                let zone = self.zone_of(change.at);
                zone.map_or_else(
                    || covered.contains(&change.id),
                    |zone| last.get(&zone).is_some_and(|last| change.id <= *last),
                )
            });
        let mut durable = std::mem::take(&mut self.durable);
        for change in &now {
            self.apply(&mut durable, change, usize::MAX);
        }
        self.durable = durable;
        self.changes = later;
    }

    pub(crate) fn read(&mut self, at: u64, bytes: &mut [u8]) {
        for (at, bytes) in (at..).zip(bytes.chunks_mut(BLOCK)) {
            self.counters.read += 1;
            match self.view.blocks.get(&at) {
                Some(block) => bytes.copy_from_slice(&block[..]),
                None => bytes.fill(0),
            }
        }
    }

    /// Blocks written to a sequential zone.
    pub(crate) fn written(&self, zone: usize) -> u32 {
        self.view.written[zone]
    }

    /// Somebody damages a block.
    pub(crate) fn scribble(&mut self, at: u64, change: impl FnOnce(&mut [u8; BLOCK])) {
        let mut block = self.view.blocks.get(&at).map_or([0; BLOCK], |block| **block);
        change(&mut block);
        for state in [&mut self.view, &mut self.durable] {
            state.blocks.insert(at, Rc::new(block));
        }
    }

    /// All its bytes.
    pub(crate) fn image(&self) -> Vec<u8> {
        let zones = self.zones.conventional + self.zones.sequential;
        let mut bytes = vec![0; index(zones) * index(self.zone_blocks) * BLOCK];
        for (at, block) in &self.view.blocks {
            bytes[index64(*at) * BLOCK..][..BLOCK].copy_from_slice(&block[..]);
        }
        bytes
    }

    /// Has such bytes from now on, durable, and these write pointers.
    pub(crate) fn load(&mut self, bytes: &[u8], written: Vec<u32>) {
        let blocks = (0..).zip(bytes.chunks(BLOCK));
        let blocks = blocks.map(|(at, block)| (at, Rc::new(block.try_into().expect("whole"))));
        assert_eq!(written.len(), self.view.written.len(), "write pointers");
        self.view = State { blocks: blocks.collect(), written };
        self.durable = self.view.clone();
        self.changes.clear();
    }

    fn cut(&self, rng: &mut Rng) -> Self {
        let mut state = self.durable.clone();
        let kind = rng.below(4);
        let mut ended = vec![false; self.durable.written.len()];
        for change in &self.changes {
            let whole = match kind {
                0 => false,
                1 => true,
                _ => rng.below(2) == 0,
            };
            let blocks = match &change.what {
                What::Write(blocks) => blocks.len(),
                What::Reset => 1,
            };
            match self.zone_of(change.at) {
                Some(zone) if ended[zone] => {}
                Some(_) if whole => self.apply(&mut state, change, blocks),
                Some(zone) => {
                    ended[zone] = true;
                    if kind != 0 && matches!(change.what, What::Write(_)) {
                        let limit = index64(rng.below(u64_from(blocks)));
                        self.apply(&mut state, change, limit);
                    }
                }
                None => tear(&mut state, change, whole, kind == 0, rng),
            }
        }
        let mut device = Self::new(self.zone_blocks, self.zones);
        device.durable = state.clone();
        device.view = state;
        device.drops_flushes = self.drops_flushes;
        device
    }
}

/// A write to a conventional zone happens block by block.
fn tear(state: &mut State, change: &Change, whole: bool, lost: bool, rng: &mut Rng) {
    let What::Write(blocks) = &change.what else { return };
    for (at, block) in (change.at..).zip(blocks) {
        if whole || (!lost && rng.below(2) == 0) {
            state.blocks.insert(at, Rc::clone(block));
        }
    }
}

/// All devices of a volume.
#[derive(Clone)]
pub(crate) struct Disks(pub(crate) Vec<Device>);

impl Disks {
    pub(crate) fn new(zone_blocks: u32, devices: &[DeviceZones]) -> Self {
        Self(devices.iter().map(|zones| Device::new(zone_blocks, *zones)).collect())
    }

    /// What a power cut leaves, at random.
    pub(crate) fn cut(&self, rng: &mut Rng) -> Self {
        Self(self.0.iter().map(|device| device.cut(rng)).collect())
    }

    /// Counts from zero.
    pub(crate) fn reset_counters(&mut self) {
        for device in &mut self.0 {
            device.counters = Counters::default();
        }
    }
}

impl Backing for Disks {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        self.0[device].read(at, bytes);
        Ok(())
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let id = self.0[device].begin_write(at, bytes);
        self.0[device].complete(id);
        Ok(())
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        let covered = self.0[device].begin_flush();
        self.0[device].end_flush(&covered);
        Ok(())
    }

    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed> {
        let id = self.0[device].begin_reset(at);
        self.0[device].complete(id);
        Ok(())
    }

    fn report(&mut self, device: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        let zone = self.0[device].zone_of(at).expect("a sequential zone");
        let offline = self.0[device].offline.contains(&zone);
        let condition = if offline { Condition::Offline } else { Condition::Good };
        Ok(ZoneReport { condition, written: self.0[device].written(zone) })
    }
}
