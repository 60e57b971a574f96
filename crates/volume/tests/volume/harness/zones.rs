//! Zones of a backing: where each is in its life. Strict: whatever a device would refuse is a panic.

use onefold_units::ZoneState;
use onefold_units::convert::{index, index64, narrow};
use onefold_volume::{ZoneReport, ZoneStatus};

/// What zones a backing has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneSetup {
    pub(crate) size: u32,
    pub(crate) capacity: u32,
    pub(crate) limit: Option<u32>,
    /// So many zones from the first one on have no write pointer, and so has the last one if there are any.
    pub(crate) conventional: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    written: u32,
    finished: bool,
    /// It is read-only or offline.
    failed: Option<ZoneState>,
}

/// All zones of a backing.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    setup: ZoneSetup,
    list: Vec<Zone>,
}

impl Zones {
    /// Zones that are full of what somebody else wrote.
    pub(crate) fn new(setup: ZoneSetup, blocks: u64) -> Self {
        let zone = Zone { written: setup.capacity, finished: false, failed: None };
        Self { setup, list: vec![zone; index64(blocks / u64::from(setup.size))] }
    }

    pub(crate) fn zone_of(&self, at: u64) -> u32 {
        narrow(at / u64::from(self.setup.size))
    }

    pub(crate) fn is_sequential_at(&self, at: u64) -> bool {
        !self.is_conventional(self.zone_of(at))
    }

    /// The blocks of a zone.
    pub(crate) fn blocks(&self, zone: u32) -> std::ops::Range<u64> {
        let start = u64::from(zone) * u64::from(self.setup.size);
        start..start + u64::from(self.setup.size)
    }

    pub(crate) fn is_conventional(&self, zone: u32) -> bool {
        let count = self.setup.conventional;
        zone < count || count > 0 && zone + 1 == self.len()
    }

    /// What is done to a zone with a write pointer only.
    fn sequential(&mut self, zone: u32) -> &mut Zone {
        assert!(!self.is_conventional(zone), "zone {zone} is conventional");
        &mut self.list[index(zone)]
    }

    pub(crate) fn state(&self, number: u32) -> ZoneState {
        let zone = self.list[index(number)];
        match zone {
            Zone { failed: Some(state), .. } => state,
            _ if self.is_conventional(number) => ZoneState::Full,
            _ if zone.finished || zone.written == self.setup.capacity => ZoneState::Full,
            Zone { written: 0, .. } => ZoneState::Empty,
            _ => ZoneState::Closed,
        }
    }

    pub(crate) fn active(&self) -> usize {
        (0..).zip(&self.list).filter(|(zone, _)| self.state(*zone).is_active()).count()
    }

    /// Panics unless a write may begin; `opening` other zones are about to become active.
    pub(crate) fn check_write(&self, at: u64, blocks: u64, opening: usize) {
        let zone = self.zone_of(at);
        let (state, of) = (self.state(zone), self.list[index(zone)]);
        let start = self.blocks(zone).start;
        assert_eq!(
            at - start,
            u64::from(of.written),
            "a write to zone {zone} off its write pointer"
        );
        assert!(
            state.is_active() || state == ZoneState::Empty,
            "a write to zone {zone}, {state:?}"
        );
        let end = at - start + blocks;
        assert!(end <= self.setup.capacity.into(), "a write behind the end of zone {zone}");
        let (active, limit) = (self.active(), self.setup.limit);
        assert!(!self.exceeds(at, opening), "{active} active zones, and {limit:?} are allowed");
    }

    /// Whether a write makes more zones active than there may be.
    pub(crate) fn exceeds(&self, at: u64, opening: usize) -> bool {
        let more = usize::from(self.state(self.zone_of(at)) == ZoneState::Empty);
        self.active() + more + opening > index(self.setup.limit.unwrap_or(u32::MAX))
    }

    pub(crate) fn advance(&mut self, at: u64, blocks: u64) {
        let zone = self.zone_of(at);
        let end = at + blocks - self.blocks(zone).start;
        self.list[index(zone)].written = narrow(end);
    }

    pub(crate) fn reset(&mut self, zone: u32) {
        let of = self.sequential(zone);
        *of = Zone { written: 0, finished: false, ..*of };
    }

    /// The write pointer is before the last block that was written.
    pub(crate) fn fall_back(&mut self, zone: u32) {
        self.list[index(zone)].written -= 1;
    }

    pub(crate) fn finish(&mut self, zone: u32) {
        self.sequential(zone).finished = true;
    }

    pub(crate) fn fail(&mut self, zone: u32, state: ZoneState) {
        self.list[index(zone)].failed = Some(state);
    }

    pub(crate) fn is_writable(&self, zone: u32) -> bool {
        self.list[index(zone)].failed.is_none()
    }

    pub(crate) fn is_offline(&self, zone: u32) -> bool {
        self.list[index(zone)].failed == Some(ZoneState::Offline)
    }

    pub(crate) fn len(&self) -> u32 {
        onefold_units::convert::u32_from(self.list.len())
    }

    pub(crate) fn report(&self) -> ZoneReport {
        let of = |zone: u32| ZoneStatus {
            conventional: self.is_conventional(zone),
            state: self.state(zone),
            // Undefined where there is no write pointer.
            written: match self.state(zone) {
                ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline => 0x7777,
                _ => self.list[index(zone)].written,
            },
            capacity: self.setup.capacity,
        };
        ZoneReport {
            zone_blocks: self.setup.size,
            max_open: None,
            max_active: self.setup.limit,
            zones: (0..self.len()).map(of).collect(),
        }
    }

    /// Blocks before the write pointer, and whether it was finished, of each zone.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = (u32, bool)> {
        self.list.iter().map(|zone| (zone.written, zone.finished))
    }

    /// Zones with these.
    pub(crate) fn with_pointers(
        setup: ZoneSetup,
        pointers: impl Iterator<Item = (u32, bool)>,
    ) -> Self {
        let zone = |(written, finished)| Zone { written, finished, failed: None };
        Self { setup, list: pointers.map(zone).collect() }
    }

    /// Tells zones apart.
    pub(crate) fn digest(&self) -> u64 {
        let of = |zone: &Zone| u64::from(zone.written) << 4 | u64::from(zone.finished) << 2;
        self.list.iter().fold(7, |digest: u64, zone| {
            (digest ^ of(zone) ^ u64::from(zone.failed.is_some()))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
    }
}
