//! The zones: what each is for, and the lists they are taken from.
//!
//! 1. A zone is in exactly one list: free by kind (oldest first), reserved, or mapped by kind in LRU order; or in none, if it
//!    holds metadata, is the journal's, is out of service, or is held until it may be used again.
//! 2. A mapped zone is the data zone of its chunk or its buffer zone; both name each other as partner.
//! 3. A zone is locked by one reclaim at most, and only while no request of the host is active in it.

use std::collections::{BTreeMap, VecDeque};

use onefold_units::ZoneId;
use onefold_units::convert::{index, u32_from};

use crate::geometry::{Geometry, ZoneKind};

/// Whether a zone can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Yes.
    #[default]
    Good,
    /// A write to it or a reset of it failed: it is emptied, reset and used again. No device says that.
    Suspect,
    /// It can only be read.
    ReadOnly,
    /// Not at all.
    Offline,
}

/// What a zone is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Metadata, or out of service.
    None,
    /// In a free list.
    Free,
    /// Taken by reclaim as a target, or given back and not free yet.
    Held,
    /// Data zone of its chunk.
    Data,
    /// Buffer zone of its chunk.
    Buffer,
    /// In the journal zone set.
    Journal,
}

#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) kind: ZoneKind,
    pub(crate) device: u32,
    /// First block on its device.
    pub(crate) start: u64,
    pub(crate) condition: Condition,
    pub(crate) role: Role,
    /// Which chunk, while it is mapped.
    pub(crate) chunk: u32,
    /// The other zone of the chunk.
    pub(crate) partner: Option<ZoneId>,
    /// Write pointer of a sequential zone, from the start of the zone.
    pub(crate) wp: u32,
    /// Valid blocks.
    pub(crate) weight: u32,
    /// Requests of the host that use it.
    pub(crate) active: u32,
    /// Being reclaimed.
    pub(crate) locked: bool,
    /// The host wants it back from reclaim.
    pub(crate) terminate: bool,
    /// Only reclaim may take it.
    pub(crate) reserved: bool,
    /// How often a write or a reset failed, since one of a whole copy did not.
    pub(crate) strikes: u32,
    /// Its place in the LRU order.
    stamp: u64,
}

impl Zone {
    pub(crate) fn is_sequential(&self) -> bool {
        self.kind == ZoneKind::Sequential
    }

    /// Whether it holds the data of a chunk and takes nothing any more.
    pub(crate) fn is_ailing(&self) -> bool {
        self.is_sequential() && self.role == Role::Data && self.condition != Condition::Good
    }

    /// Whether it holds data of a chunk or of the journal.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.role, Role::Data | Role::Buffer | Role::Journal)
    }
}

/// Lists of a device.
#[derive(Clone, Debug, Default)]
struct Lists {
    free_random: VecDeque<ZoneId>,
    free_sequential: VecDeque<ZoneId>,
    random: BTreeMap<u64, ZoneId>,
    sequential: BTreeMap<u64, ZoneId>,
    /// Conventional zones for data.
    in_random: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Zones {
    all: Vec<Zone>,
    devices: Vec<Lists>,
    free_cache: VecDeque<ZoneId>,
    cache: BTreeMap<u64, ZoneId>,
    reserved: VecDeque<ZoneId>,
    has_cache: bool,
    in_cache: u32,
    /// Stamps given out.
    clock: u64,
}

impl Zones {
    /// No zone is in a list.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let zone = |id: ZoneId| Zone {
            kind: geometry.kind(id),
            device: Geometry::number(geometry.device_of(id)),
            start: geometry.start(id),
            condition: Condition::Good,
            role: Role::None,
            chunk: 0,
            partner: None,
            wp: 0,
            weight: 0,
            active: 0,
            locked: false,
            terminate: false,
            reserved: false,
            strikes: 0,
            stamp: 0,
        };
        Self {
            all: geometry.ids().map(zone).collect(),
            devices: geometry.per_device(),
            free_cache: VecDeque::new(),
            cache: BTreeMap::new(),
            reserved: VecDeque::new(),
            has_cache: geometry.has_cache(),
            in_cache: 0,
            clock: 0,
        }
    }

    pub(crate) fn get(&self, zone: ZoneId) -> &Zone {
        &self.all[zone.index()]
    }

    pub(crate) fn get_mut(&mut self, zone: ZoneId) -> &mut Zone {
        &mut self.all[zone.index()]
    }

    fn mapped(&mut self, zone: ZoneId) -> &mut BTreeMap<u64, ZoneId> {
        let Zone { kind, device, .. } = self.all[zone.index()];
        match kind {
            ZoneKind::Cache => &mut self.cache,
            ZoneKind::Random => &mut self.devices[index(device)].random,
            ZoneKind::Sequential => &mut self.devices[index(device)].sequential,
        }
    }

    /// Maps a zone: it goes to the end of its LRU list.
    pub(crate) fn map(&mut self, id: ZoneId, role: Role, chunk: u32, partner: Option<ZoneId>) {
        self.clock += 1;
        let stamp = self.clock;
        let zone = self.get_mut(id);
        zone.role = role;
        zone.chunk = chunk;
        zone.partner = partner;
        zone.stamp = stamp;
        self.mapped(id).insert(stamp, id);
    }

    /// Unmaps a zone: it is in no list, and its partner is alone.
    pub(crate) fn unmap(&mut self, id: ZoneId) {
        let stamp = self.get(id).stamp;
        self.mapped(id).remove(&stamp);
        let zone = self.get_mut(id);
        zone.role = Role::Held;
        if let Some(partner) = zone.partner.take() {
            self.get_mut(partner).partner = None;
        }
    }

    /// A mapped zone was used: it goes to the end of its LRU list.
    pub(crate) fn rotate(&mut self, id: ZoneId) {
        let old = self.get(id).stamp;
        self.clock += 1;
        let stamp = self.clock;
        self.get_mut(id).stamp = stamp;
        let list = self.mapped(id);
        list.remove(&old);
        list.insert(stamp, id);
    }

    /// The zones of a worker's victim list in LRU order: those of the cache, or the random ones of its device.
    pub(crate) fn victims(&self, device: usize, idle: bool) -> impl Iterator<Item = ZoneId> {
        let use_cache = self.has_cache && !(idle && self.cache.is_empty());
        let list = if use_cache { &self.cache } else { &self.devices[device].random };
        list.values().copied()
    }

    /// The mapped sequential zones of a device in LRU order.
    pub(crate) fn sequential(&self, device: usize) -> impl Iterator<Item = ZoneId> {
        self.devices[device].sequential.values().copied()
    }

    /// A free zone for a chunk: never a sequential one.
    pub(crate) fn take_for_chunk(&mut self) -> Option<ZoneId> {
        let list =
            if self.has_cache { &mut self.free_cache } else { &mut self.devices[0].free_random };
        list.pop_front()
    }

    /// A free zone that reclaim on `device` moves a conventional one to.
    pub(crate) fn take_for_reclaim(&mut self, device: usize) -> Option<ZoneId> {
        let (before, after) = self.devices.split_at_mut(device);
        let mut lists = after.iter_mut().chain(before);
        let found = lists.find_map(|lists| lists.free_sequential.pop_front());
        found.or_else(|| self.reserved.pop_front()).or_else(|| {
            let (before, after) = self.devices.split_at_mut(device);
            let mut lists = after.iter_mut().chain(before).filter(|_| self.has_cache);
            lists.find_map(|lists| lists.free_random.pop_front())
        })
    }

    /// A free sequential zone for the journal.
    pub(crate) fn take_for_journal(&mut self) -> Option<ZoneId> {
        let found = self.devices.iter_mut().find_map(|lists| lists.free_sequential.pop_front());
        found.or_else(|| self.reserved.pop_front())
    }

    /// Puts a zone at the end of its free list.
    pub(crate) fn put_free(&mut self, id: ZoneId) {
        let zone = self.get_mut(id);
        zone.role = Role::Free;
        let Zone { kind, device, reserved, .. } = *zone;
        let lists = &mut self.devices[index(device)];
        match kind {
            ZoneKind::Cache => self.free_cache.push_back(id),
            ZoneKind::Random => lists.free_random.push_back(id),
            ZoneKind::Sequential if reserved => self.reserved.push_back(id),
            ZoneKind::Sequential => lists.free_sequential.push_back(id),
        }
    }

    /// Reserved zones that are free.
    pub(crate) fn reserved(&self) -> u32 {
        u32_from(self.reserved.len())
    }

    /// Free zones by kind; reserved ones not counted.
    pub(crate) fn free(&self, kind: ZoneKind) -> u32 {
        u32_from(match kind {
            ZoneKind::Cache => self.free_cache.len(),
            ZoneKind::Random => self.devices.iter().map(|device| device.free_random.len()).sum(),
            ZoneKind::Sequential => {
                self.devices.iter().map(|device| device.free_sequential.len()).sum()
            }
        })
    }

    /// Free and all zones that count for a worker (zoned.md, section 3): those of the cache, or the random ones of its device.
    pub(crate) fn room(&self, device: usize) -> (u32, u32) {
        let lists = &self.devices[device];
        if self.has_cache {
            (u32_from(self.free_cache.len()), self.in_cache)
        } else {
            (u32_from(lists.free_random.len()), lists.in_random)
        }
    }

    /// Conventional zones for data, free or not.
    pub(crate) fn conventional(&self) -> u32 {
        if self.has_cache { self.in_cache } else { self.devices[0].in_random }
    }

    /// Counts the zones in service, once all of them have their role.
    pub(crate) fn count(&mut self) {
        for zone in self.all.iter().filter(|zone| zone.role != Role::None) {
            match zone.kind {
                ZoneKind::Cache => self.in_cache += 1,
                ZoneKind::Random => self.devices[index(zone.device)].in_random += 1,
                ZoneKind::Sequential => {}
            }
        }
    }

    /// Locks a zone for reclaim, if nobody uses it (invariant 3).
    pub(crate) fn lock(&mut self, id: ZoneId) -> bool {
        let zone = self.get_mut(id);
        let readable = zone.condition != Condition::Offline || zone.weight == 0;
        let free = zone.active == 0 && !zone.locked && readable;
        zone.locked |= free;
        free
    }
}
