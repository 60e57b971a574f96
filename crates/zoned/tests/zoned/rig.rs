//! A volume on strict devices, driven in virtual time.

use std::collections::{BTreeMap, VecDeque};

use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Nanos, ZoneId};
use onefold_zoned::{
    DeviceZones, Done, Failure, Geometry, Identity, Io, IoFailed, IoKind, MountError, Options,
    Recovery, Request, Sent, Volume, format, mount,
};

use crate::disk::Disks;
use crate::weather::Weather;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// Blocks of a zone of these tests.
pub(crate) const ZONE: u32 = 16;

/// A regular device of 10 zones and a zoned one of 14: 11 chunks, 6 cache, 4 free and 9 reserved sequential zones.
pub(crate) fn two_devices() -> Vec<DeviceZones> {
    vec![
        DeviceZones { conventional: 10, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 14 },
    ]
}

/// Too few zones for a journal of more than two to have some of its own; 6 of them are cache.
pub(crate) fn few_zones() -> Vec<DeviceZones> {
    vec![
        DeviceZones { conventional: 10, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 9 },
    ]
}

/// 10 cache zones, so that a journal of one chunk may rest in them.
pub(crate) fn large_cache() -> Vec<DeviceZones> {
    vec![
        DeviceZones { conventional: 16, sequential: 0 },
        DeviceZones { conventional: 0, sequential: 26 },
    ]
}

/// One zoned device: 8 chunks, 4 random, 5 free and 7 reserved sequential zones.
pub(crate) fn one_device() -> Vec<DeviceZones> {
    vec![DeviceZones { conventional: 8, sequential: 12 }]
}

pub(crate) fn identity(devices: usize) -> Identity {
    let mut label = [0; 32];
    label[..4].copy_from_slice(b"rig\0");
    Identity { label, uuid: [1; 16], device_uuids: vec![[2; 16]; devices] }
}

/// A request to a device that takes time.
pub(crate) struct Underway {
    pub(crate) io: Io,
    /// What a write or reset is called on its device.
    change: Option<u64>,
    /// What a flush covers.
    covered: Vec<u64>,
    /// It fails, whether or not it was carried out.
    fails: Option<IoFailed>,
}

pub(crate) struct Rig {
    pub(crate) volume: Volume,
    pub(crate) disks: Disks,
    pub(crate) now: Nanos,
    pub(crate) under_way: VecDeque<Underway>,
    tags: u64,
    pub(crate) dones: BTreeMap<u64, Done>,
    /// Zones that take no writes and no resets, and of which some cannot be read.
    pub(crate) bad: BTreeMap<ZoneId, Bad>,
    /// Which requests fail beside those.
    pub(crate) weather: Weather,
}

/// What a zone out of service cannot do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    Written,
    Read,
    /// Nothing any more.
    Recovered,
}

pub(crate) fn formatted(zone_blocks: u32, devices: &[DeviceZones]) -> (Disks, Geometry) {
    let geometry = Geometry::new(zone_blocks, devices.to_vec()).unwrap();
    let mut disks = Disks::new(zone_blocks, devices);
    format(&mut disks, &geometry, &identity(devices.len())).unwrap();
    (disks, geometry)
}

impl Rig {
    pub(crate) fn new(devices: &[DeviceZones], options: Options) -> Self {
        Self::with_zones(ZONE, devices, options)
    }

    /// Zones of that many blocks.
    pub(crate) fn with_zones(zone_blocks: u32, devices: &[DeviceZones], options: Options) -> Self {
        let (disks, geometry) = formatted(zone_blocks, devices);
        Self::mount(disks, &geometry, options).0
    }

    pub(crate) fn mount(disks: Disks, geometry: &Geometry, options: Options) -> (Self, Recovery) {
        Self::try_mount(disks, geometry, options).unwrap()
    }

    pub(crate) fn try_mount(
        mut disks: Disks,
        geometry: &Geometry,
        options: Options,
    ) -> Result<(Self, Recovery), MountError> {
        let now = Nanos::ZERO;
        let (volume, recovery) = mount(&mut disks, geometry, options, now)?;
        disks.reset_counters();
        let (under_way, dones) = (VecDeque::new(), BTreeMap::new());
        let (bad, weather) = (BTreeMap::new(), Weather::default());
        Ok((Self { volume, disks, now, under_way, tags: 0, dones, bad, weather }, recovery))
    }

    /// Gives a request to the volume, which takes it; its tag.
    pub(crate) fn submit(&mut self, request: Request) -> u64 {
        self.tags += 1;
        self.volume.submit(self.now, self.tags, request).unwrap();
        self.collect();
        self.tags
    }

    /// Devices get what the volume asks for, in order.
    pub(crate) fn collect(&mut self) {
        while let Some(io) = self.volume.poll_io() {
            let zone = self.volume.geometry().zone_at(index(io.device), io.at);
            let bad = zone.and_then(|zone| self.bad.get(&zone)).copied();
            let is_bad = match io.kind {
                IoKind::Read => bad == Some(Bad::Read),
                IoKind::Write | IoKind::Reset => matches!(bad, Some(Bad::Written | Bad::Read)),
                IoKind::Flush => false,
            };
            let mut fault = self.weather.fault(&io);
            if is_bad {
                fault = Some((IoFailed::Error, 0));
            }
            let device = &mut self.disks.0[index(io.device)];
            if !self.weather.is_fair() && io.kind == IoKind::Write && !device.takes(io.at) {
                fault = Some((IoFailed::Error, 0));
            }
            // What fails may have been carried out in part.
            let blocks = fault.map_or(io.blocks, |(_, part)| part.min(io.blocks));
            let (mut change, mut covered) = (None, Vec::new());
            match io.kind {
                IoKind::Write if blocks > 0 => {
                    let bytes = &self.volume.buffer(io.id)[..index(blocks) * crate::disk::BLOCK];
                    change = Some(device.begin_write(io.at, bytes));
                }
                IoKind::Reset if fault.is_none_or(|(_, part)| part > 0) => {
                    change = Some(device.begin_reset(io.at));
                }
                // A device reads at any time until it says that it is done.
                IoKind::Read | IoKind::Write | IoKind::Reset => {}
                IoKind::Flush => covered = device.begin_flush(),
            }
            let fails = fault.map(|(why, _)| why);
            self.under_way.push_back(Underway { io, change, covered, fails });
        }
        while let Some(done) = self.volume.poll_done() {
            self.dones.insert(done.tag, done);
        }
    }

    /// A request to a device ends.
    pub(crate) fn complete(&mut self, at: usize) {
        let underway = self.under_way.remove(at).expect("under way");
        let Underway { io, change, covered, fails } = underway;
        let device = &mut self.disks.0[index(io.device)];
        if let Some(change) = change {
            device.complete(change);
        }
        match io.kind {
            // What a read leaves that failed means nothing.
            IoKind::Read if fails.is_some() => self.volume.buffer_mut(io.id).fill(0xEE),
            IoKind::Read => device.read(io.at, self.volume.buffer_mut(io.id)),
            IoKind::Flush if fails.is_some() => device.lose(&covered),
            IoKind::Flush => device.end_flush(&covered),
            IoKind::Write | IoKind::Reset => {}
        }
        self.volume.completed(self.now, io.id, fails.map_or(Ok(()), Err));
        self.collect();
    }

    /// Every request to a device ends at once, until there is none.
    pub(crate) fn settle(&mut self) {
        self.collect();
        while !self.under_way.is_empty() {
            self.complete(0);
        }
        self.check_counters();
    }

    /// Time goes on, and the volume is called when it wants to be.
    pub(crate) fn advance(&mut self, ns: u64) {
        let end = self.now + Nanos::new(ns);
        self.settle();
        while let Some(due) = self.volume.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.volume.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    pub(crate) fn write(&mut self, lba: u64, op: u64, blocks: u32) -> u64 {
        let data = crate::oracle::stamped(op, lba, blocks);
        self.submit(Request::Write { lba, blocks, fua: false, data })
    }

    /// Writes and waits for it; it must not fail.
    pub(crate) fn write_now(&mut self, lba: u64, op: u64, blocks: u32) {
        let tag = self.write(lba, op, blocks);
        self.wait(tag);
        assert_eq!(self.result(tag), Some(Ok(())));
    }

    /// Waits for a request while what fails is sent again.
    pub(crate) fn wait(&mut self, tag: u64) {
        self.settle();
        while self.result(tag).is_none() && !self.bad.is_empty() {
            self.tick();
            self.settle();
        }
    }

    /// The journal is found elsewhere, without blocks that are rewritten at any time.
    pub(crate) fn set_journal(&mut self, ranges: impl IntoIterator<Item = std::ops::Range<u64>>) {
        self.volume.set_journal(self.now, ranges.into_iter().collect(), Vec::new());
        self.settle();
    }

    pub(crate) fn discard_now(&mut self, lba: u64, blocks: u32) {
        let tag = self.submit(Request::Discard { lba, blocks });
        self.settle();
        assert_eq!(self.result(tag), Some(Ok(())));
    }

    pub(crate) fn flush_now(&mut self) {
        let tag = self.submit(Request::Flush);
        self.settle();
        assert_eq!(self.result(tag), Some(Ok(())));
    }

    pub(crate) fn result(&self, tag: u64) -> Option<Result<(), Failure>> {
        self.dones.get(&tag).map(|done| done.result)
    }

    pub(crate) fn bytes_now(&mut self, lba: u64, blocks: u32) -> Vec<u8> {
        let tag = self.submit(Request::Read { lba, blocks });
        self.settle();
        let done = self.dones.remove(&tag).expect("a read ends");
        assert_eq!(done.result, Ok(()));
        done.data
    }

    /// The operations that wrote some blocks.
    pub(crate) fn read_now(&mut self, lba: u64, blocks: u32) -> Vec<u64> {
        let data = self.bytes_now(lba, blocks);
        (lba..)
            .zip(data.chunks(crate::disk::BLOCK))
            .map(|(lba, block)| crate::oracle::stamp(block, lba))
            .collect()
    }

    /// Z12: every block and flush of each device has exactly one cause.
    pub(crate) fn check_counters(&self) {
        if !self.bad.is_empty() || !self.weather.is_fair() {
            // What a device refused it does not count.
            return;
        }
        for (device, disk) in self.volume.stats().devices.iter().zip(&self.disks.0) {
            assert_eq!(device.sent_total(), disk.counters.written, "blocks written");
            assert_eq!(device.read + device.read_for_copying, disk.counters.read, "blocks read");
            assert_eq!(device.flushes_sent, disk.counters.flushes, "flushes");
            assert_eq!(device.resets, disk.counters.resets, "resets");
        }
    }

    pub(crate) fn sent(&self, device: usize, cause: Sent) -> u64 {
        self.volume.stats().devices[device].sent(cause)
    }

    /// A block of a chunk.
    pub(crate) fn at(&self, chunk: u64, block: u64) -> u64 {
        chunk * u64::from(self.volume.geometry().zone_blocks()) + block
    }

    /// Writes the first block of chunks, one after the other; the operation is the chunk's number + 1.
    pub(crate) fn fill_chunks(&mut self, chunks: std::ops::Range<u64>) {
        for chunk in chunks {
            self.write_now(self.at(chunk, 0), 1 + chunk, 1);
        }
    }

    /// The number of the data zone of a chunk.
    pub(crate) fn data(&self, chunk: u32) -> Option<u32> {
        self.volume.zones_of(chunk).0.map(ZoneId::raw)
    }

    /// The number of its buffer zone.
    pub(crate) fn buffer(&self, chunk: u32) -> Option<u32> {
        self.volume.zones_of(chunk).1.map(ZoneId::raw)
    }

    /// Ends requests to devices until only such are under way.
    pub(crate) fn run_until(&mut self, wanted: impl Fn(&Io) -> bool) {
        self.collect();
        while let Some(at) = self.under_way.iter().position(|underway| !wanted(&underway.io)) {
            self.complete(at);
        }
        assert!(!self.under_way.is_empty(), "it never comes to that");
    }

    /// Ends all such requests to devices, those that follow from them included.
    pub(crate) fn complete_all(&mut self, wanted: impl Fn(&Io) -> bool) {
        while let Some(at) = self.under_way.iter().position(|underway| wanted(&underway.io)) {
            self.complete(at);
        }
    }

    /// Time goes on until a reclaim begins.
    pub(crate) fn run_idle(&mut self) {
        for _ in 0..100 {
            if self.volume.is_reclaiming() {
                return;
            }
            self.settle();
            self.tick();
        }
        panic!("no reclaim begins");
    }

    /// Calls the volume when it wants to be called next, and does nothing else.
    pub(crate) fn tick(&mut self) {
        let due = self.volume.poll_timeout().expect("it wants to be called");
        self.now = self.now.max(due);
        self.volume.handle_timeout(self.now);
        self.collect();
    }

    /// The zone of the journal zone set that a stream is appended to.
    pub(crate) fn head(&self, stream: onefold_zoned::Stream) -> ZoneId {
        self.volume.set_head(stream).expect("a zone of the set")
    }

    /// Whether a chunk lies in a sequential zone.
    pub(crate) fn is_sequential(&self, chunk: u32) -> bool {
        let (data, _) = self.volume.zones_of(chunk);
        data.is_some_and(|zone| {
            self.volume.geometry().kind(zone) == onefold_zoned::ZoneKind::Sequential
        })
    }

    pub(crate) fn zone_blocks(&self) -> u32 {
        self.volume.geometry().zone_blocks()
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.volume.blocks()
    }

    pub(crate) fn index(&self, below: u64) -> usize {
        index64(below) % self.under_way.len().max(1)
    }

    pub(crate) fn under_way(&self) -> u64 {
        u64_from(self.under_way.len())
    }
}
