//! Blocks that the cleaner has to move, where flushed batches would be padded.

use onefold_units::{Lba, Rng};
use onefold_volume::{Acknowledge, CleanMove, MemberId, Options, Sent, mount};

use super::{BLOCK, Rig};

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
    let (data, filled, _) = flushed_singly(&mut rig, 3000);
    assert!(2 * filled > data, "{data} blocks, {filled} filled");
    rig.read_all();
    for close in [false, true] {
        rig.reopen(close);
        rig.read_all();
        flushed_singly(&mut rig, 200);
    }
    rig.read_all();
}

/// A block that rotted in a victim would make a batch of the host one that is not whole, and an opening would leave out what it holds.
#[test]
fn a_damaged_block_fills_no_padding() {
    let mut rig = worn(OPTIONS());
    let blocks = rig.blocks();
    let damaged: Vec<u64> = (0..blocks).step_by(40).collect();
    for lba in &damaged {
        let (at, _) =
            rig.volume.look_up(&mut rig.memory, MemberId::DEVICE, Lba::new(*lba)).unwrap();
        rig.memory.bytes[usize::try_from(at.raw()).unwrap() * BLOCK] ^= 1;
    }
    let mut rng = Rng::new(8);
    let mut filled = 0;
    for _ in 0..40 {
        for _ in 0..60 {
            let lba = rng.below(blocks / 40) * 40 + 1 + rng.below(39);
            rig.write(lba, 1);
            rig.volume.flush(9).unwrap();
            rig.step();
        }
        filled += rig.volume.stats().filled;
        // As after a kill: what came last is replayed.
        let volume_blocks = (rig.memory.bytes.len() / BLOCK) as u64;
        rig.volume = mount(&mut rig.memory, volume_blocks, rig.options).unwrap().0;
        for lba in (0..blocks - 40).step_by(40) {
            rig.read(lba + 1, 39);
        }
    }
    assert!(filled > 500, "{filled}");
}

/// Whoever looks for what members share counts on log segments of the host having nothing that is older (`super::family`).
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
