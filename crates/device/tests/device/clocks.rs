//! One queue, the same requests: the served device and the simulator count the same in the buffer.

use crate::common::{Folder, buffered, geometry, plain};
use onefold_device::{BlockDevice, SsdDevice};
use onefold_nand::{FaultSpec, NullMedia};
use onefold_ssd::{ClassifierSpec, Command, Payload, Ssd, SsdError, Writeback};
use onefold_testkit::small_policies;
use onefold_units::{Cause, Nanos, Op, PAGE_BYTES, Rng, Status};

/// Mostly pages, a few sectors and bytes; runs of writes, trims of all sizes, flushes, FUA.
fn request(rng: &mut Rng, size: u64) -> Command {
    let grain = [4096, 4096, 4096, 512, 100][usize::try_from(rng.below(5)).unwrap()];
    let place = if rng.below(2) == 0 { size } else { size / 16 };
    let offset = rng.below(place / grain) * grain;
    let len = ((1 + rng.below(16)) * grain).min(size - offset);
    let op = match rng.below(20) {
        0..10 => Op::Write,
        10..16 => Op::Read,
        16..18 => Op::Trim,
        18 => Op::WriteZeroes,
        _ => return Command::new(Op::Flush, 0, 0),
    };
    Command { fua: op == Op::Write && rng.below(10) == 0, ..Command::new(op, offset, len) }
}

fn serve(device: &SsdDevice, command: &Command) -> Result<(), Status> {
    let Command { offset, len, fua, .. } = *command;
    let bytes = usize::try_from(len).unwrap();
    let done = match command.op {
        Op::Read => device.read(offset, &mut vec![0; bytes]),
        Op::Write => device.write(offset, &vec![7; bytes], fua),
        Op::Trim => device.trim(offset, len),
        Op::WriteZeroes => device.write_zeroes(offset, len, true, false),
        Op::Flush => device.flush(),
    };
    done.map(drop)
}

#[test]
fn both_clocks_count_the_same() {
    for policy in small_policies() {
        let mut config = buffered(policy);
        // Which victims still serve reads depends on the time.
        config.writeback = Writeback::Sync;
        let folder = Folder::new(&config);
        let device = folder.open().device;
        let mut simulated = Ssd::new(config, NullMedia).unwrap();
        let mut now = Nanos::ZERO;
        let mut rng = Rng::new(11);
        for _ in 0..300 {
            let command = request(&mut rng, device.size());
            serve(&device, &command).unwrap();
            let done = simulated.submit(now, &command, Payload::None).unwrap();
            now = done.at;
        }
        let (served, simulated) = (device.buffer_stats(), simulated.buffer_stats());
        let total = served.as_ref().unwrap().total();
        assert!(total.reads.hits > 30 && total.pages_programmed > 80, "{total:?}");
        assert_eq!(served, simulated, "{}", policy.name());
    }
}

/// A classifier reads no clock, so what it places is the same, with a buffer and without: eight streams, one superblock each.
#[test]
fn both_clocks_place_alike() {
    let buffer = small_policies().into_iter().find(|policy| policy.name() == "aoi").unwrap();
    let shapes = [(plain(), geometry(4096, 44, 16)), (buffered(buffer), geometry(16_384, 32, 8))];
    for (mut config, shape) in shapes {
        config.geometry = shape;
        config.writeback = Writeback::Sync;
        config.ftl.streams = 8;
        config.classifier = ClassifierSpec::parse("auto").unwrap();
        let folder = Folder::new(&config);
        let device = folder.open().device;
        let mut simulated = Ssd::new(config, NullMedia).unwrap();
        let (mut now, mut rng) = (Nanos::ZERO, Rng::new(17));
        for _ in 0..3000 {
            let command = request(&mut rng, device.size());
            serve(&device, &command).unwrap();
            now = simulated.submit(now, &command, Payload::None).unwrap().at;
        }
        let (served, counted) = (device.details().unwrap().ftl, simulated.ftl().stats());
        assert!(served.programs.of(Cause::Gc) > 100, "{served:?}");
        assert_eq!(served, counted);
    }
}

/// The same seed strikes the same operations, and what the drive does about it is the same: it goes on where a program failed,
/// empties what reads badly, and retires what failed.
#[test]
fn both_clocks_meet_the_same_faults() {
    let mut config = plain();
    config.ftl.relocate = true;
    let seeds = 1..9;
    let (mut retired, mut relocated) = (0, 0);
    for seed in seeds {
        let (program, slow) = (0.0005, 0.01);
        let healthy = FaultSpec::default();
        config.faults = FaultSpec { program, erase: 0.0005, slow, slow_by: 10, seed, ..healthy };
        let folder = Folder::new(&config);
        let device = folder.open().device;
        let mut simulated = Ssd::new(config, NullMedia).unwrap();
        let mut now = Nanos::ZERO;
        let mut rng = Rng::new(seed);
        for n in 0..600 {
            let command = request(&mut rng, device.size());
            let served = serve(&device, &command);
            let done = simulated.submit(now, &command, Payload::None);
            assert_eq!(served.is_ok(), done.is_ok(), "request {n} of seed {seed}: {command:?}");
            now = done.map_or(now, |done| done.at);
        }
        let details = device.details().unwrap();
        let (served, counted) = (details.ftl, simulated.ftl().stats());
        assert_eq!(served, counted, "seed {seed}");
        assert!(served.slow.reads > 0 && served.slow.programs > 0, "{served:?}");
        let bad = simulated.ftl().space().bad_superblocks;
        assert_eq!(details.retired_superblocks, bad, "seed {seed}");
        retired += bad;
        relocated += served.relocated;
    }
    assert!(retired > 0 && relocated > 10, "{retired} retired, {relocated} relocated");
}

/// What was taken into use last may be lost in a power cut, and with it what the failure was counted by: the die stays failed.
#[test]
fn a_failed_die_stays_failed_over_a_power_cut() {
    for die in 2..30 {
        let mut config = plain();
        config.faults = FaultSpec { die, ..FaultSpec::default() };
        let folder = Folder::new(&config);
        let device = folder.open().device;
        let pages = device.size() / PAGE_BYTES;
        let mut rng = Rng::new(die);
        while device.write(rng.below(pages) * PAGE_BYTES, &[1; 4096], false).is_ok() {}
        let failed = device.details().unwrap().failed_die;
        assert!(failed.is_some(), "die {die}");
        device.cut_power().unwrap();
        assert_eq!(
            device.details().unwrap().failed_die.map(|cut| cut.die),
            failed.map(|die| die.die)
        );
    }
}

/// A die fails at the same operation in both clocks, and what lay on it is lost for good, whether the drive was closed or killed since:
/// reads of it are errors, all others right, and nothing is changed any more.
#[test]
fn both_clocks_lose_the_same_die() {
    let mut config = plain();
    config.faults = FaultSpec { die: 12, ..FaultSpec::default() };
    let folder = Folder::new(&config);
    let device = folder.open().device;
    let mut simulated = Ssd::new(config, NullMedia).unwrap();
    let (mut now, mut rng, mut refused) = (Nanos::ZERO, Rng::new(3), 0);
    for n in 0..600 {
        let command = request(&mut rng, device.size());
        let served = serve(&device, &command);
        let done = simulated.submit(now, &command, Payload::None);
        assert_eq!(served.is_ok(), done.is_ok(), "request {n}: {command:?}, {served:?}, {done:?}");
        refused += u32::from(done.as_ref().is_err_and(SsdError::is_read_only));
        now = done.map_or(now, |done| done.at);
    }
    let failed = simulated.ftl().failed_die();
    assert!(refused > 50 && failed.is_some_and(|failed| failed.lost_pages > 0), "{failed:?}");
    assert_eq!(device.details().unwrap().failed_die, failed);
    simulated.ftl().check().unwrap();
    drop(device);

    let mut lost = None;
    for closed in [false, true, true] {
        let device = folder.open().device;
        let failed = device.details().unwrap().failed_die.unwrap();
        assert_eq!(failed.die, simulated.ftl().failed_die().unwrap().die);
        let is_lost = |page: &u64| device.read(page * PAGE_BYTES, &mut [0; 4096]).is_err();
        let errors = || (0..device.size() / PAGE_BYTES).filter(is_lost).count();
        assert_eq!(u64::try_from(errors()).unwrap(), failed.lost_pages);
        assert_eq!(device.write(0, &[1; 4096], false), Err(Status::MediaError));
        assert_eq!(device.trim(0, 4096), Err(Status::MediaError));
        assert_eq!(device.flush().map(drop), Ok(()));
        assert_eq!(*lost.get_or_insert(failed), failed, "nothing changes any more");
        device.cut_power().unwrap();
        assert_eq!(u64::try_from(errors()).unwrap(), failed.lost_pages);
        assert_eq!(device.details().unwrap().failed_die, Some(failed));
        if closed {
            device.close().unwrap();
        }
    }
}
