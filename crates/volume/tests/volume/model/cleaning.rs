//! The cleaner and the host, where log segments are short.

use std::collections::BTreeSet;

use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{Backing, Io, IoKind, Options, Range, Refusal, Sent, Trim, Victim};

use super::{BLOCK, Rig, options, stamp};

/// Blocks of a log segment.
const SEGMENT: u64 = 64;

/// A volume that was overwritten until its cleaner had work.
fn worn(options: Options) -> Rig {
    let mut rig = Rig::new(SEGMENT * 160, 7600, options);
    let mut rng = Rng::new(3);
    while rig.volume.stats().freed_segments < 200 {
        let lba = rng.below(rig.blocks() - 8);
        rig.write(lba, 8);
        rig.step();
    }
    rig
}

#[test]
fn trims_keep_no_pause_where_log_segments_are_short() {
    let rig = worn(Options { trim_pause: Nanos::new(1 << 50), ..options() });
    let stats = rig.volume.stats();
    assert!(stats.trim_sent / SEGMENT > stats.freed_segments / 2, "{stats:?}");
}

/// More is to be free than can be: the cleaner leaves log segments alone from which it would gain next to nothing.
#[test]
fn nearly_full_log_segments_are_not_worth_their_copies() {
    let mut rig = worn(Options { clean_below: Some(120), ..options() });
    let before = *rig.volume.stats();
    let mut rng = Rng::new(4);
    for _ in 0..1000 {
        let lba = rng.below(rig.blocks() - 8);
        rig.write(lba, 8);
        rig.step();
    }
    let after = rig.volume.stats();
    let copied = after.sent(Sent::Cleaning) - before.sent(Sent::Cleaning);
    let written = after.written - before.written;
    assert!(copied < 12 * written, "{copied} blocks for {written}");
}

/// Files are not told of log segments that are written again soon, but of those that stay free.
#[test]
fn spare_log_segments_are_trimmed_when_they_stayed_free() {
    let mut rig = worn(Options { trim: Trim::Spare, ..options() });
    assert_eq!(rig.volume.stats().trim_sent, 0, "while all are in use");
    let blocks = rig.blocks();
    rig.trim(0, blocks);
    // 29 s, then a minute.
    for (steps, least, most) in [(14_500, 0, 0), (30_000, 120, 160)] {
        (0..steps).for_each(|_| rig.step());
        let trimmed = rig.volume.stats().trim_sent / SEGMENT;
        assert!((least..=most).contains(&trimmed), "{trimmed} log segments after {:?}", rig.now);
    }
    rig.read_all();
}

/// Answers what it is asked, but for reads: those it holds.
fn answer_writes(rig: &mut Rig, held: &mut Vec<Io>) {
    rig.volume.pump(rig.now);
    while let Some(io) = rig.volume.poll_io() {
        let at = u64::from(io.at.raw());
        match io.kind {
            IoKind::Read => {
                held.push(io);
                continue;
            }
            IoKind::Write => {
                let bytes = rig.volume.buffer(io.id)[..io.blocks as usize * BLOCK].to_vec();
                rig.memory.write(at, &bytes).unwrap();
            }
            _ => {}
        }
        rig.volume.completed(rig.now, io.id, Ok(()));
    }
}

#[test]
fn several_victims_are_walked_side_by_side_where_log_segments_are_short() {
    let mut rig = worn(options());
    let (mut rng, mut held) = (Rng::new(4), Vec::new());
    let data = stamp(0, 1).repeat(8);
    for _ in 0..100_000 {
        let range = Range { lba: Lba::new(rng.below(rig.blocks() - 8)), blocks: 8 };
        let busy = rig.volume.write(1, range, Some(&data), false) == Err(Refusal::Busy);
        rig.now += Nanos::new(2_000_000);
        answer_writes(&mut rig, &mut held);
        if busy {
            break;
        }
    }
    // Nothing was read of them, so these are headers.
    let victims: BTreeSet<u64> = held.iter().map(|io| u64::from(io.at.raw()) / SEGMENT).collect();
    assert!(victims.len() > 1 && victims.len() == held.len(), "{held:?}");
}

/// Short-lived data on a volume whose other data is old: its log segments are nearly empty soon, and cost less than old ones that are
/// half full.
#[test]
fn nearly_empty_log_segments_are_cleaned_before_old_ones() {
    let mut rig = worn(Options { victim: Victim::CostBenefit, ..options() });
    let before = *rig.volume.stats();
    for round in 0..400 {
        for lba in (0..240).step_by(8) {
            rig.write(lba, 8);
            rig.step();
        }
        // A few that live longer lie among them.
        rig.write(300 + round * 8 % 3000, 8);
    }
    let stats = rig.volume.stats().since(&before);
    let copied = stats.sent(Sent::Cleaning);
    // By age and emptiness alone it would be 16 for each hundred.
    assert!(copied < stats.written / 10, "{copied} blocks for {}", stats.written);
}
