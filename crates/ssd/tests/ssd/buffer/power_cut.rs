//! Power fails with a dirty buffer: what was flushed or written with FUA is there, what was not may
//! be lost, and nothing is mixed. For every policy, with and without write-back in the background.

use onefold_ftl::{FtlError, Layout};
use onefold_nand::MediaError;
use onefold_ssd::{ClassifierSpec, Ssd, SsdConfig, SsdError, Writeback};
use onefold_testkit::{Cut, CutMedia, Model, Power, fill, for_each_seed, small_policies};
use onefold_units::Rng;
use onefold_units::convert::{index64, narrow, u64_from};

use super::common::{Rig, config, geometry};

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];

struct Device {
    config: SsdConfig,
    rig: Rig<CutMedia>,
    model: Model,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write { lpn: u32, n: u32, fua: bool },
    Read { lpn: u32, n: u32 },
    Trim { lpn: u32, n: u32 },
    Flush,
}

impl Step {
    fn random(rng: &mut Rng, units: u32) -> Self {
        let lpn = narrow(rng.below(u64::from(units)));
        let most = if rng.below(4) == 0 { 24 } else { 3 };
        let n = (1 + narrow(rng.below(most))).min(units - lpn);
        match rng.below(20) {
            0..12 => Self::Write { lpn, n, fua: rng.below(10) == 0 },
            12..17 => Self::Read { lpn, n },
            17..19 => Self::Trim { lpn, n },
            _ => Self::Flush,
        }
    }
}

impl Device {
    fn new(config: &SsdConfig, power: Power, seed: u64) -> Self {
        let layout = Layout::new(&config.geometry, &config.ftl).unwrap();
        let media = CutMedia::new(&config.geometry, layout.nvram_bytes(), power, seed);
        let rig = Rig::new(Ssd::new(*config, media).unwrap());
        let model = Model::new(rig.ssd.ftl().host_units(), power == Power::Device);
        Self { config: *config, rig, model }
    }

    fn unit(&self) -> u64 {
        u64::from(self.config.geometry.unit_bytes())
    }

    /// `false` if power failed in it.
    fn run(&mut self, step: Step) -> bool {
        // Some programs end between two requests, some do not.
        self.rig.now += 150_000;
        match self.try_run(step) {
            Ok(()) => true,
            Err(SsdError::Ftl(FtlError::Media(MediaError::PowerLost))) => false,
            Err(error) => panic!("{step:?}: {error} with {:?}", self.config),
        }
    }

    fn try_run(&mut self, step: Step) -> Result<(), SsdError> {
        let unit = self.unit();
        let offset = |lpn: u32| u64::from(lpn) * unit;
        match step {
            Step::Write { lpn, n, fua } => {
                let mut data = vec![0; index64(offset(n))];
                for (lpn, bytes) in (lpn..lpn + n).zip(data.chunks_mut(index64(unit))) {
                    fill(lpn, self.model.write(lpn), bytes);
                }
                self.rig.write(offset(lpn), &data, fua)?;
                if fua {
                    self.model.durable(lpn..lpn + n);
                }
            }
            Step::Read { lpn, n } => {
                let data = self.rig.read(offset(lpn), offset(n))?;
                for (lpn, bytes) in (lpn..lpn + n).zip(data.chunks(index64(unit))) {
                    self.model.check_running(lpn, bytes).unwrap();
                }
            }
            Step::Trim { lpn, n } => {
                self.model.trim_begins(lpn..lpn + n);
                self.rig.trim(offset(lpn), offset(n))?;
                self.model.trim_completes(lpn..lpn + n);
            }
            Step::Flush => {
                self.rig.flush()?;
                assert_eq!(self.rig.ssd.buffer().unwrap().stats().total().dirty, 0);
                self.model.flushed();
            }
        }
        self.rig.ssd.buffer().unwrap().check().unwrap();
        Ok(())
    }

    fn arm(&mut self, after: u64, cut: Cut) {
        self.rig.ssd.ftl_mut().nand_mut().media_mut().arm(after, cut);
    }

    /// Power comes back, and everything is looked at.
    fn recover(self) -> Self {
        let Self { config, rig, mut model } = self;
        let mut media = rig.ssd.into_media();
        media.restore();
        let (ssd, report) = Ssd::recover(config, media).unwrap();
        assert_eq!(report.lost_units, 0, "{report:?} with {config:?}");
        let mut rig = Rig::new(ssd);
        let unit = u64::from(config.geometry.unit_bytes());
        for lpn in 0..rig.ssd.ftl().host_units() {
            let data = rig.read(u64::from(lpn) * unit, unit).unwrap();
            model.settle(lpn, &data).unwrap_or_else(|wrong| panic!("{wrong} with {config:?}"));
        }
        Self { config, rig, model }
    }
}

/// Seeds go through the policies in turn.
fn random_config(seed: u64, rng: &mut Rng) -> SsdConfig {
    let policies = small_policies();
    let policy = policies[index64(seed) % policies.len()];
    let shapes = [(4096, 4096), (8192, 4096), (16_384, 4096), (16_384, 16_384)];
    let (page, unit) = shapes[index64(rng.below(4))];
    let mut config = config(policy, geometry(page, unit), 64);
    config.ftl.metadata_pages = rng.below(2) == 0;
    config.ftl.streams = 1 + narrow(rng.below(2));
    if rng.below(2) == 0 {
        config.writeback = Writeback::Async { slots: 1 + narrow(rng.below(20)) };
    }
    if rng.below(2) == 0 {
        // It can only misplace.
        config.classifier = ClassifierSpec::parse("auto").unwrap();
    }
    config
}

fn random_run(seed: u64, power: Power) {
    let mut rng = Rng::fork(seed, 5);
    let config = random_config(seed, &mut rng);
    let mut device = Device::new(&config, power, seed);
    let units = device.rig.ssd.ftl().host_units();
    for _ in 0..3 {
        device.arm(rng.below(200), CUTS[index64(rng.below(3))]);
        while device.run(Step::random(&mut rng, units)) {}
        device = device.recover();
    }
}

#[test]
fn random_device_cuts() {
    for_each_seed(("onefold-ssd", "ssd", "buffer::power_cut::random_device_cuts"), 300, |seed| {
        random_run(seed, Power::Device);
    });
}

#[test]
fn random_host_cuts() {
    for_each_seed(("onefold-ssd", "ssd", "buffer::power_cut::random_host_cuts"), 150, |seed| {
        random_run(seed, Power::Host);
    });
}

/// Power fails at every operation of a FLUSH that has the whole buffer to program.
#[test]
fn every_cut_of_a_flush() {
    for policy in small_policies() {
        for writeback in [Writeback::Sync, Writeback::Async { slots: 4 }] {
            for cut in CUTS {
                for after in 0.. {
                    let mut config = config(policy, geometry(8192, 4096), 64);
                    config.writeback = writeback;
                    let mut device = Device::new(&config, Power::Device, after);
                    for round in [0, 3] {
                        for lpn in 0..12 {
                            let lpn = (lpn * 5 + round) % 64;
                            assert!(device.run(Step::Write { lpn, n: 1, fua: false }));
                        }
                    }
                    device.arm(after, cut);
                    let done = device.run(Step::Flush);
                    device.recover();
                    if done {
                        break;
                    }
                }
            }
        }
    }
}

/// A power cut loses exactly what was not flushed: a buffer that wrote everything at once would pass
/// the tests above.
#[test]
fn a_cut_loses_what_was_not_flushed_and_nothing_else() {
    for policy in small_policies() {
        let config = config(policy, geometry(4096, 4096), 64);
        let mut device = Device::new(&config, Power::Device, 1);
        let page = |byte: u8| vec![byte; 4096];
        for lpn in 0..10_u64 {
            device.rig.write(lpn * 4096, &page(1), false).unwrap();
        }
        device.rig.flush().unwrap();
        for lpn in 0..4_u64 {
            device.rig.write(lpn * 4096, &page(2), lpn == 3).unwrap();
        }
        device.rig.trim(8 * 4096, 2 * 4096).unwrap();
        let mut media = device.rig.ssd.into_media();
        media.restore();
        let mut rig = Rig::new(Ssd::recover(config, media).unwrap().0);
        let found: Vec<u8> = (0..10_u64).map(|lpn| rig.read(lpn * 4096, 1).unwrap()[0]).collect();
        let name = policy.name();
        assert_eq!(found, [1, 1, 1, 2, 1, 1, 1, 1, 0, 0], "{name}");
    }
}

/// Requests of any sector against an array of bytes, with a cut after each FLUSH: partly written
/// pages are completed before they go to flash, and no older victim comes back.
#[test]
fn sectors_survive_eviction_and_cuts() {
    for_each_seed(("onefold-ssd", "ssd", "sectors_survive_eviction_and_cuts"), 80, |seed| {
        let mut rng = Rng::fork(seed, 6);
        let config = random_config(seed, &mut rng);
        let mut device = Device::new(&config, Power::Device, seed);
        let size = device.rig.ssd.capacity();
        let mut bytes = vec![0; index64(size)];
        for step in 0..300_u64 {
            device.rig.now += rng.below(100_000);
            // Most requests meet in a few pages; every fourth has bytes as its unit.
            let grain = if rng.below(4) == 0 { 1 } else { 512 };
            let place = if rng.below(3) == 0 { size } else { 20 * device.unit() };
            let offset = rng.below(place / grain) * grain;
            let len = ((1 + rng.below(40_000 / grain)) * grain).min(size - offset);
            let range = index64(offset)..index64(offset + len);
            match rng.below(10) {
                0..5 => {
                    let data: Vec<u8> = (0..len).map(|at| byte(step * 31 + at)).collect();
                    device.rig.write(offset, &data, rng.below(8) == 0).unwrap();
                    bytes[range].copy_from_slice(&data);
                }
                5 => {
                    device.rig.trim(offset, len).unwrap();
                    bytes[range].fill(0);
                }
                6 => {
                    device.rig.flush().unwrap();
                    if rng.below(2) == 0 {
                        device = again(device);
                    }
                }
                _ => {
                    let found = device.rig.read(offset, len).unwrap();
                    assert!(found == bytes[range], "{len} B at {offset} with {config:?}");
                }
            }
        }
        let found = device.rig.read(0, u64_from(bytes.len())).unwrap();
        assert!(found == bytes, "at the end with {config:?}");
    });
}

fn byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

/// The device after a power cut.
fn again(device: Device) -> Device {
    let mut media = device.rig.ssd.into_media();
    media.restore();
    let rig = Rig::new(Ssd::recover(device.config, media).unwrap().0);
    Device { rig, ..device }
}
