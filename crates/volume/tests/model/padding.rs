//! Blocks that the cleaner has to move, where flushed batches would be padded.

use onefold_units::Rng;
use onefold_volume::{Acknowledge, CleanMove, MemberId, Options, Sent};

use crate::Rig;

const OPTIONS: fn() -> Options = || Options {
    acknowledge: Acknowledge::Buffered,
    clean_move: CleanMove::Copy,
    ..Options::default()
};

/// A volume on a drive that maps 16 KiB, overwritten until its cleaner has work.
fn worn(options: Options) -> Rig {
    let mut rig = Rig::of_units((128, 4), 128 * 150, 11_000, options);
    let mut rng = Rng::new(5);
    for lba in (0..11_000).step_by(50) {
        rig.write(lba, 50);
        rig.step();
    }
    while rig.volume.stats().cleaned_segments < 40 {
        let lba = rng.below(rig.blocks() - 8);
        rig.write(lba, 8);
        rig.step();
    }
    rig
}

/// Single blocks, each flushed: what each sends to the log in blocks of data, moved blocks and padding.
fn flushed_singly(rig: &mut Rig, writes: u64) -> (u64, u64, u64) {
    let before = *rig.volume.stats();
    let mut rng = Rng::new(6);
    for _ in 0..writes {
        let lba = rng.below(rig.blocks());
        rig.write(lba, 1);
        rig.volume.flush(9).unwrap();
        rig.step();
    }
    let stats = rig.volume.stats().since(&before);
    (stats.sent(Sent::User), stats.filled, stats.sent(Sent::Padding))
}

/// Two blocks would pad each of these batches. Many are blocks that have to move, as many as the cleaner needs, and all of it reads as it
/// should, before and after openings that replay such batches.
#[test]
fn blocks_that_have_to_move_fill_padding() {
    let mut rig = worn(OPTIONS());
    let (data, filled, padding) = flushed_singly(&mut rig, 3000);
    assert!(
        filled > data && padding < data / 2,
        "{data} blocks, {filled} filled, {padding} padded"
    );
    rig.read_all();
    for close in [false, true] {
        rig.reopen(close);
        rig.read_all();
        flushed_singly(&mut rig, 200);
    }
    rig.read_all();
}

/// Whoever looks for what members share counts on log segments of the host having nothing that is older (`crate::family`).
#[test]
fn beside_a_snapshot_padding_is_padding() {
    let mut rig = worn(OPTIONS());
    rig.make(MemberId::DEVICE, "s", false);
    rig.step();
    let (data, filled, padding) = flushed_singly(&mut rig, 300);
    assert!(filled == 0 && padding >= 2 * data, "{data} blocks, {filled} filled, {padding} padded");
}

/// A drive that maps 4 KiB pads nothing.
#[test]
fn without_padding_nothing_waits_for_it() {
    let mut rig = Rig::new(64 * 150, 5000, OPTIONS());
    let mut rng = Rng::new(7);
    while rig.volume.stats().cleaned_segments < 40 {
        let lba = rng.below(rig.blocks() - 8);
        rig.write(lba, 8);
        rig.step();
    }
    assert_eq!((rig.volume.stats().filled, rig.volume.stats().sent(Sent::Padding)), (0, 0));
}
