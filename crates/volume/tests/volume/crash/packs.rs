//! Blocks that are compressed.

use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{Codec, MemberId, Options, Volume, drive, inspect, settle};

use crate::harness::disk::Disk;
use crate::harness::errors::assert_right_or_error;
use crate::harness::rig::{Op, Rig, open};
use crate::harness::setup::{OPTIONS, Setup};
use crate::harness::stamp::{self, BLOCK, noisy_sectors};

fn setup(compress: Option<Codec>) -> Setup {
    let options = Options { checkpoint_blocks: 400, clean_below: Some(20), ..OPTIONS };
    Setup { compress, ..Setup::of(64 * 134, 2100, options) }
}

fn stats(rig: &Rig) -> onefold_volume::Stats {
    *rig.volume.as_log().map(Volume::stats).expect("a volume of mode log")
}

/// A block that fits the header of its batch is written with it, and one that does not has a block of its own.
#[test]
fn a_small_block_is_in_the_header_of_its_batch() {
    for codec in [None, Some(Codec::Lz4), Some(Codec::Zstd)] {
        let packed = codec.is_some();
        let mut rig = Rig::new(setup(codec), 1);
        let (mut small, mut large) = (0, 0);
        for lba in 0..60 {
            let sectors = noisy_sectors(rig.oracle.next_op(), lba);
            let before = stats(&rig);
            assert!(rig.run(Op::Write { lba, blocks: 1, fua: false }));
            assert!(rig.run(Op::Flush) && rig.settle());
            let sent = stats(&rig).sent_total() - before.sent_total();
            // Six sectors of noise and what is between them leave no room for the header.
            let is_small = packed && sectors < 8;
            assert_eq!(
                sent,
                if is_small { 1 } else { 2 },
                "block {lba}, {sectors} sectors of noise"
            );
            (small, large) = (small + u32::from(is_small), large + u32::from(sectors == 8));
            assert!(rig.run(Op::Read { lba, blocks: 1 }) && rig.settle());
        }
        assert!((small > 20) == packed && (large > 0) == packed, "{small} and {large}");
        rig.cut_and_reopen(0).expect("what was flushed is there");
    }
}

/// The volume takes less of the log, and cleans less, when it is full of what compresses.
#[test]
fn what_compresses_takes_less_of_the_log() {
    let [plain, packed] = [None, Some(Codec::Lz4)].map(|codec| {
        let mut rig = Rig::new(setup(codec), 2);
        let mut rng = Rng::new(2);
        for lba in (0..6000).map(|_| rng.below(2100)) {
            assert!(rig.run(Op::Write { lba, blocks: 1, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
        rig.assert_counts();
        let volume = rig.volume.as_log().expect("a volume of mode log");
        (stats(&rig).sent_total(), volume.live_blocks(), stats(&rig).packed)
    });
    assert_eq!(plain.2, 0);
    assert!(packed.2 > 4000, "{packed:?}");
    // Three in ten compress to a quarter, one to a half, and so on (`stamp::noisy_sectors`).
    assert!(5 * packed.1 < 4 * plain.1, "live: {packed:?}, {plain:?}");
    assert!(4 * packed.0 < 3 * plain.0, "sent: {packed:?}, {plain:?}");
}

const CODEC: Option<Codec> = Some(Codec::Zstd);

fn worked(seed: u64) -> Rig {
    let mut rig = Rig::new(setup(CODEC), seed);
    for lba in (0..2100).step_by(30) {
        assert!(rig.run(Op::Write { lba, blocks: 30, fua: false }));
    }
    assert!(rig.run(Op::Checkpoint) && rig.settle());
    rig
}

/// A pack that rots is an error for what is in it and for nothing else, also after the cleaner moved it. A check tells it.
#[test]
fn damaged_packs_are_errors_for_what_is_in_them() {
    let rig = worked(3);
    let image = rig.disk.view().clone();
    let state = rig.oracle.state_at(u64::MAX);
    let whole = inspect(&mut Disk::new(image.clone()), setup(CODEC).backing_blocks, true);
    assert_eq!(whole.expect("it can be looked at").findings.len(), 0);
    let (mut rng, mut several) = (Rng::new(3), 0);
    for round in 0..40 {
        stamp::with_noise(true);
        let mut disk = Disk::new(image.clone());
        let (mut volume, _) = open(&mut disk, &setup(CODEC)).expect("it opens");
        let log = volume.as_log_mut().expect("a volume of mode log");
        let lba = rng.below(u64_from(state.len()));
        let Some((at, _)) = log.look_up(&mut disk, MemberId::DEVICE, Lba::new(lba)) else {
            continue;
        };
        let (block, slot) = log.layout().split(at);
        if !at.is_block() || !slot.is_packed() {
            continue;
        }
        let mut damaged = disk.view().clone();
        // Somewhere at the front, where sizes are, or anywhere.
        let within = if round % 2 == 0 { 20 } else { BLOCK };
        damaged.flip(block.raw().into(), index64(rng.below(u64_from(within * 8))));
        let told = inspect(&mut Disk::new(damaged.clone()), setup(CODEC).backing_blocks, true);
        let told = told.map_or(1, |report| report.findings.len());
        let mut disk = Disk::new(damaged);
        for _ in 0..2 {
            let errors = assert_right_or_error(&mut *volume, &mut disk, &state);
            assert_eq!(errors.pages, 0);
            assert!(errors.blocks <= 4, "{} blocks of one pack", errors.blocks);
            assert!(errors.blocks == 0 || told > 0, "a check says nothing");
            several += u32::from(errors.blocks > 1);
            volume.want_cleaning();
            drive(&mut *volume, &mut disk, Nanos::new(2));
        }
        volume.close();
        assert!(settle(&mut *volume, &mut disk, Nanos::new(3)));
    }
    assert!(several > 0, "no pack had more than one block");
}
