//! Random commands, good and bad ones, against a plain model: every status, state, write pointer and content is the same. Half of
//! the namespaces have conventional zones in front, for which an array of blocks is model enough.

use onefold_ssd::Payload;
use onefold_ssd::zns::{Select, Zns, ZnsConfig, ZnsError, ZoneAction, ZoneState};
use onefold_testkit::{CutMedia, for_each_seed};
use onefold_units::convert::{index, index64, narrow, u64_from};
use onefold_units::{Rng, ZoneId};

use super::common::{NOW, bytes_of, config, fresh, limits, read, with_conventional, write};

const CAPACITY: usize = 12;
const SIZE: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Zone {
    state: ZoneState,
    blocks: [u64; 16],
    written: usize,
}

/// The table of zoned.md section 2 as plain code. Errors are status codes.
struct Model {
    zones: Vec<Zone>,
    /// Implicitly open zones, oldest first.
    implicit: Vec<usize>,
    open: usize,
    active: usize,
}

impl Model {
    fn new(zones: u32, open: u32, active: u32) -> Self {
        let zone = Zone { state: ZoneState::Empty, blocks: [0; 16], written: 0 };
        let (open, active) = (index(open), index(active));
        Self { zones: vec![zone; index(zones)], implicit: Vec::new(), open, active }
    }

    fn count(&self, states: &[ZoneState]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    fn put(&mut self, zone: usize, state: ZoneState) {
        self.implicit.retain(|open| *open != zone);
        if state == ZoneState::ImplicitlyOpen {
            self.implicit.push(zone);
        }
        self.zones[zone].state = state;
    }

    fn room(&mut self, zone: usize) -> Result<(), u8> {
        use ZoneState::{Closed, ExplicitlyOpen, ImplicitlyOpen};
        let active = self.count(&[ImplicitlyOpen, ExplicitlyOpen, Closed]);
        if self.zones[zone].state == ZoneState::Empty && active >= self.active {
            return Err(0xBD);
        }
        if self.count(&[ImplicitlyOpen, ExplicitlyOpen]) < self.open {
            return Ok(());
        }
        let victim = *self.implicit.first().ok_or(0xBE)?;
        self.put(victim, Closed);
        Ok(())
    }

    fn write(&mut self, zone: usize, at: Option<usize>, versions: &[u64]) -> Result<usize, u8> {
        let before = self.zones[zone];
        match before.state {
            ZoneState::Full => return Err(0xB9),
            ZoneState::ReadOnly => return Err(0xBA),
            ZoneState::Offline => return Err(0xBB),
            _ => {}
        }
        if at.is_some_and(|at| at != before.written) {
            return Err(0xBC);
        }
        let end = before.written + versions.len();
        if end > CAPACITY {
            return Err(0xB8);
        }
        if !before.state.is_open() {
            self.room(zone)?;
            self.put(zone, ZoneState::ImplicitlyOpen);
        }
        self.zones[zone].blocks[before.written..end].copy_from_slice(versions);
        self.zones[zone].written = end;
        if end == CAPACITY {
            self.put(zone, ZoneState::Full);
        }
        Ok(before.written)
    }

    fn act(&mut self, zone: usize, action: ZoneAction) -> Result<(), u8> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        match (action, self.zones[zone].state) {
            (ZoneAction::Open, Empty | Closed) => {
                self.room(zone)?;
                self.put(zone, ExplicitlyOpen);
            }
            (ZoneAction::Open, ImplicitlyOpen | ExplicitlyOpen) => self.put(zone, ExplicitlyOpen),
            (ZoneAction::Close, ImplicitlyOpen | ExplicitlyOpen | Closed) => self.put(zone, Closed),
            (_, ReadOnly | Offline) if action != ZoneAction::Offline => return Err(0xBF),
            (ZoneAction::Finish, _) => self.put(zone, Full),
            (ZoneAction::Reset, _) => {
                self.put(zone, Empty);
                (self.zones[zone].written, self.zones[zone].blocks) = (0, [0; 16]);
            }
            (ZoneAction::Offline, ReadOnly | Offline) => self.put(zone, Offline),
            _ => return Err(0xBF),
        }
        Ok(())
    }
}

fn random_config(rng: &mut Rng) -> ZnsConfig {
    let page = [1, 2, 4][index64(rng.below(3))];
    let open = 1 + narrow(rng.below(4));
    let mut config = config(page, 6, limits(open, open + narrow(rng.below(3))));
    config.zone_dies = 1 + narrow(rng.below(2));
    config.geometry = super::common::geometry(page, 24);
    config.cache_bytes = [0, 16_384, 1 << 20][index64(rng.below(3))];
    config.cache_volatile = rng.below(2) == 0;
    if rng.below(2) == 0 { with_conventional(&config, 2) } else { config }
}

/// A namespace and its model, which get the same commands.
struct Pair {
    zns: Zns<CutMedia>,
    model: Model,
    /// The blocks of conventional zones.
    front: Vec<u64>,
    rng: Rng,
    version: u64,
}

impl Pair {
    /// First block of a sequential zone.
    fn start(&self, zone: usize) -> u64 {
        u64_from(self.front.len() + zone * index64(SIZE))
    }

    /// Number of a sequential zone.
    fn id(&self, zone: usize) -> ZoneId {
        ZoneId::from_index(self.front.len() / index64(SIZE) + zone)
    }

    /// A command that begins in a conventional zone.
    fn step_in_front(&mut self) {
        let at = self.rng.below(u64_from(self.front.len()));
        let count = 1 + self.rng.below(6);
        let fits = at % SIZE + count <= SIZE;
        let range = index64(at)..index64(at + count);
        let zone = Select::One(ZoneId::new(narrow(at / SIZE)));
        match self.rng.below(12) {
            0..6 => {
                let versions: Vec<u64> = (self.version + 1..=self.version + count).collect();
                self.version += count;
                let done = write(&mut self.zns, at, &versions, self.rng.below(5) == 0);
                assert_eq!(done.map_err(code), if fits { Ok(()) } else { Err(0xB8) });
                if fits {
                    self.front[range].copy_from_slice(&versions);
                }
            }
            6 => {
                let done = self.zns.deallocate(NOW, at, narrow(count)).map(drop);
                assert_eq!(done.map_err(code), if fits { Ok(()) } else { Err(0xB8) });
                if fits {
                    self.front[range].fill(0);
                }
            }
            7 => {
                let action = ZoneAction::ALL[index64(self.rng.below(5))];
                assert_eq!(self.zns.manage(NOW, zone, action).map(drop).map_err(code), Err(0x02));
            }
            8 => {
                let start = at - at % SIZE;
                let done = self.zns.append(NOW, start, 1, false, &Payload::Zeroes).map(drop);
                assert_eq!(done.map_err(code), Err(0x02));
            }
            _ => {
                let found = read(&mut self.zns, at, narrow(count)).map_err(code);
                let expected = || self.front[range].to_vec();
                assert_eq!(found, if fits { Ok(expected()) } else { Err(0xB8) });
            }
        }
    }

    fn step(&mut self) {
        if !self.front.is_empty() && self.rng.below(3) == 0 {
            return self.step_in_front();
        }
        let zone = index64(self.rng.below(6));
        match self.rng.below(20) {
            0..9 => self.write(zone),
            9..16 => {
                let action = ZoneAction::ALL[index64(self.rng.below(5))];
                let found = self.zns.manage(NOW, Select::One(self.id(zone)), action).map(drop);
                assert_eq!(found.map_err(code), self.model.act(zone, action));
            }
            16 => drop(self.zns.flush(NOW).unwrap()),
            17 if self.rng.below(8) == 0 => {
                let offline = self.rng.below(2) == 0;
                if self.zns.fail_zone(self.id(zone), offline).is_ok() {
                    let state = if offline { ZoneState::Offline } else { ZoneState::ReadOnly };
                    self.model.put(zone, state);
                }
            }
            _ => self.read(zone),
        }
    }

    /// A write or an append, most of them where they have to be.
    fn write(&mut self, zone: usize) {
        let most = if self.rng.below(5) == 0 { 13 } else { 5 };
        let count = 1 + self.rng.below(most);
        let versions: Vec<u64> = (self.version + 1..=self.version + count).collect();
        self.version += count;
        let at = match self.rng.below(4) {
            0 => index64(self.rng.below(SIZE)),
            _ => self.model.zones[zone].written,
        };
        let start = self.start(zone);
        let (blocks, fua) = (narrow(count), self.rng.below(5) == 0);
        let bytes = bytes_of(&versions);
        let payload = Payload::Write(&bytes);
        let end = self.start(6);
        let is_inside = |lba: u64| lba + count <= end;
        if self.rng.below(3) == 0 && is_inside(start) {
            let expected = self.model.write(zone, None, &versions);
            let found = self.zns.append(NOW, start, blocks, fua, &payload);
            assert_eq!(found.map(|done| index64(done.lba - start)).map_err(code), expected);
        } else if is_inside(start + u64_from(at)) {
            let expected = self.model.write(zone, Some(at), &versions).map(drop);
            let found = self.zns.write(NOW, start + u64_from(at), blocks, fua, &payload).map(drop);
            assert_eq!(found.map_err(code), expected);
        }
    }

    fn read(&mut self, zone: usize) {
        let at = self.rng.below(SIZE);
        let count = 1 + self.rng.below(SIZE - at);
        let start = self.start(zone);
        let found = read(&mut self.zns, start + at, narrow(count));
        let zone = &self.model.zones[zone];
        if zone.state == ZoneState::Offline {
            assert_eq!(found.unwrap_err().status().1, 0xBB);
        } else {
            assert_eq!(found.unwrap(), zone.blocks[index64(at)..index64(at + count)]);
        }
    }

    fn compare(&self) {
        let report = self.zns.report(self.id(0), None, 6, false).unwrap();
        for (zone, info) in self.model.zones.iter().zip(report.zones) {
            assert_eq!(info.state, zone.state);
            let pointer = info.write_pointer.map(|pointer| index64(pointer - info.start));
            assert!(pointer.is_none_or(|pointer| pointer == zone.written));
        }
        self.zns.check().unwrap();
    }
}

fn code(error: ZnsError) -> u8 {
    error.status().1
}

#[test]
fn random_commands_equal_the_model() {
    for_each_seed(("onefold-ssd", "ssd", "random_commands_equal_the_model"), 150, |seed| {
        let mut rng = Rng::fork(seed, 41);
        let config = random_config(&mut rng);
        let limits = (config.limits.max_open.unwrap(), config.limits.max_active.unwrap());
        let model = Model::new(config.zones, limits.0, limits.1);
        let front = vec![0; index(config.conventional_zones()) * index64(SIZE)];
        let mut pair = Pair { zns: fresh(&config), model, front, rng, version: 0 };
        for _ in 0..300 {
            pair.step();
            pair.compare();
        }
    });
}
