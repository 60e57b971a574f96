//! Flash that cannot be read for a while, or in one place for good, behind a buffer: a read is an error or has the right bytes, what was
//! acknowledged is not lost, and a flush that succeeds covers it. For every policy, with and without write-back in the background.

use onefold_buffer::{LRU, Policies};
use onefold_nand::FaultSpec;
use onefold_ssd::{Ssd, SsdConfig, Writeback};
use onefold_testkit::{CutMedia, for_each_seed, small_policies, small_policy};
use onefold_units::Rng;
use onefold_units::convert::{index64, low8, u64_from};

use super::common::{Rig, config, geometry};

const SECTOR: u64 = 512;

/// What each sector may hold: versions, the newest last. A write that failed may have come to pass or not.
struct Oracle(Vec<Vec<u32>>);

fn sector(at: usize, version: u32) -> Vec<u8> {
    let mut bytes = vec![low8(u64::from(version % 251)); index64(SECTOR)];
    if version > 0 {
        bytes[..4].copy_from_slice(&version.to_le_bytes());
        bytes[4..12].copy_from_slice(&u64_from(at).to_le_bytes());
    }
    bytes
}

impl Oracle {
    fn check(&self, first: usize, data: &[u8], what: &str) {
        for (at, found) in (first..).zip(data.chunks(index64(SECTOR))) {
            let fits = self.0[at].iter().any(|version| sector(at, *version) == found);
            assert!(
                fits,
                "{what}: sector {at} is none of versions {:?}: {:?}",
                self.0[at],
                &found[..16]
            );
        }
    }

    fn wrote(&mut self, first: usize, count: usize, version: u32, ok: bool) {
        for versions in &mut self.0[first..first + count] {
            if ok {
                versions.clear();
            }
            versions.push(version);
        }
    }
}

struct Device {
    rig: Rig<CutMedia>,
    oracle: Oracle,
    version: u32,
}

impl Device {
    fn new(config: &SsdConfig) -> Self {
        let layout = onefold_ftl::Layout::new(&config.geometry, &config.ftl).unwrap();
        let media = CutMedia::powered(&config.geometry, layout.nvram_bytes());
        let rig = Rig::new(Ssd::new(*config, media).unwrap());
        let sectors = index64(rig.ssd.capacity() / SECTOR);
        Self { rig, oracle: Oracle(vec![vec![0]; sectors]), version: 0 }
    }

    /// Power fails: what is in DRAM is gone.
    fn cut(self, config: &SsdConfig) -> Self {
        let (ssd, _) = Ssd::recover(*config, self.rig.ssd.into_media()).unwrap();
        Self { rig: Rig { ssd, ..self.rig }, ..self }
    }

    fn weather(&mut self, read: f64, seed: u64) {
        let faults = FaultSpec { read, seed, ..FaultSpec::default() };
        self.rig.ssd.ftl_mut().nand_mut().set_faults(faults);
    }

    fn write(&mut self, first: usize, count: usize, fua: bool) -> bool {
        self.version += 1;
        let data: Vec<u8> =
            (first..first + count).flat_map(|at| sector(at, self.version)).collect();
        let ok = self.rig.write(u64_from(first) * SECTOR, &data, fua).is_ok();
        self.oracle.wrote(first, count, self.version, ok);
        ok
    }

    fn read(&mut self, first: usize, count: usize, what: &str) -> bool {
        let read = self.rig.read(u64_from(first) * SECTOR, u64_from(count) * SECTOR);
        read.as_ref().is_ok_and(|data| {
            self.oracle.check(first, data, what);
            true
        })
    }

    /// Any operation. What fails has no other effect than that of a part of itself.
    fn step(&mut self, rng: &mut Rng, unit: usize, what: &str) {
        self.rig.now += rng.below(300_000);
        let sectors = self.oracle.0.len();
        let near = index64(rng.below(u64_from(sectors)));
        let first = if rng.below(2) == 0 { near / unit * unit } else { near };
        let most = if rng.below(4) == 0 { 6 * unit } else { unit };
        let count = (1 + index64(rng.below(u64_from(most)))).min(sectors - first);
        match rng.below(20) {
            0..9 => drop(self.write(first, count, rng.below(10) == 0)),
            9..17 => drop(self.read(first, count, what)),
            17 => {
                let (first, count) = (first / unit * unit, unit.min(sectors - first));
                let (at, len) = (u64_from(first) * SECTOR, u64_from(count) * SECTOR);
                let ok = self.rig.trim(at, len).is_ok();
                self.oracle.wrote(first, count, 0, ok);
            }
            18 => drop(self.rig.flush()),
            _ => self.rig.now += 1_000_000_000,
        }
    }
}

/// The pages of a unit that cannot be read were an error once, and another unit's data after that.
#[test]
fn what_cannot_be_loaded_is_an_error_each_time() {
    for info in Policies::builtin().iter() {
        let mut device = Device::new(&config(small_policy(info), geometry(16384, 16384), 16));
        let sectors = device.oracle.0.len();
        for first in (0..sectors).step_by(32) {
            assert!(device.write(first, 32, false));
        }
        device.rig.flush().unwrap();
        // Others take the slots.
        for first in (0..sectors / 2).step_by(32) {
            assert!(device.read(first, 32, info.name));
        }
        device.weather(1.0, 1);
        let last = sectors - 32;
        for at in [0, 8, 16, 24, 0] {
            let read = device.read(last + at, 8, info.name);
            assert!(!read || info.name != "lru", "it was read");
        }
        // A part of a unit is taken, as no flash is needed for that; it is not durable while the rest cannot be read.
        let taken = device.write(last + 8, 8, false);
        assert!(!taken || device.read(last + 8, 8, info.name), "{}", info.name);
        let read = device.read(last, 8, info.name);
        assert!(!taken || read || device.rig.flush().is_err(), "{}", info.name);
        device.weather(0.0, 1);
        device.rig.flush().unwrap();
        for first in (0..sectors).step_by(32) {
            assert!(device.read(first, 32, info.name));
        }
    }
}

/// Data that cannot be programmed for want of the rest of its unit takes no more DRAM than it may: writes fail before.
#[test]
fn what_is_stranded_is_bounded() {
    let lru = small_policy(&LRU);
    let mut device = Device::new(&config(lru, geometry(16384, 16384), 16));
    for first in (0..device.oracle.0.len()).step_by(32) {
        assert!(device.write(first, 32, false));
    }
    device.rig.flush().unwrap();
    device.weather(1.0, 1);
    let firsts = || (0..128 * 32).step_by(32);
    let taken = firsts().filter(|first| device.write(*first, 8, false)).count();
    assert!((64..=64 + 17).contains(&taken), "{taken} writes were taken");
    device.weather(0.0, 1);
    assert!(firsts().all(|first| device.write(first + 8, 8, false)));
    device.rig.flush().unwrap();
    assert!(firsts().all(|first| device.read(first, 32, "after it")));
}

#[test]
fn unreadable_flash_behind_a_buffer() {
    for_each_seed(("onefold-ssd", "ssd", "unreadable_flash_behind_a_buffer"), 4, |seed| {
        for (at, policy) in (0..).zip(small_policies()) {
            let mut rng = Rng::fork(seed, at);
            let (page, unit) = [(4096, 4096), (16384, 16384), (16384, 4096)][index64(rng.below(3))];
            let mut config = config(policy, geometry(page, unit), 16);
            if rng.below(2) == 0 {
                config.writeback = Writeback::Async { slots: 3 };
            }
            let name = format!("{policy:?}, {unit}, {:?}", config.writeback);
            let mut device = Device::new(&config);
            let unit = index64(u64::from(unit) / SECTOR);
            for _ in 0..4 {
                let bad = [0.0, 0.02, 0.3, 1.0][index64(rng.below(4))];
                device.weather(bad, rng.next_u64());
                for _ in 0..rng.below(150) {
                    device.step(&mut rng, unit, &name);
                }
                if device.rig.flush().is_ok() {
                    device = device.cut(&config);
                }
            }
            device.weather(0.0, 0);
            let sectors = device.oracle.0.len();
            // What flash could not read when it was moved is lost until it is written again.
            for first in (0..sectors).step_by(unit) {
                let whole = device.read(first, unit, &name);
                assert!(whole || device.write(first, unit, false), "{name}: {first}");
            }
            device.rig.flush().unwrap_or_else(|error| panic!("{name}: {error}"));
            for first in (0..sectors).step_by(unit) {
                assert!(device.read(first, unit, &name), "{name}: {first}");
            }
        }
    });
}
