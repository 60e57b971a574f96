//! Cleaning by remap on a backing that can, and on one that cannot.

use onefold_volume::{CleanMove, Sent, Stats};

use super::*;

fn remap_options() -> Options {
    Options { clean_move: CleanMove::Remap, ..options() }
}

/// Random work on volumes that have to be cleaned, and what they counted.
fn clean_volumes(remaps: bool) -> Stats {
    let mut last = Stats::default();
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let map_pages = if seed % 2 == 0 { usize::MAX } else { 4 };
        let mut rig = Rig::new(64 * 160, 7600, Options { map_pages, ..remap_options() });
        rig.memory.remaps = remaps;
        let mut cleaned = 0;
        for round in 0..4 {
            random_work(&mut rig, &mut rng, 600, false);
            rig.read_all();
            if let Some(wrong) = rig.volume.recount() {
                assert!(wrong.is_empty(), "{wrong:?}");
            }
            last = *rig.volume.stats();
            cleaned += last.cleaned_segments;
            assert_eq!((last.damaged_segments, last.crc_errors), (0, 0));
            if remaps {
                assert_eq!((last.sent(Sent::Cleaning), last.failed_remaps), (0, 0));
            }
            rig.reopen(round % 2 == 0);
            rig.read_all();
        }
        assert!(cleaned > 20, "{cleaned} of seed {seed}");
    }
    last
}

#[test]
fn a_backing_that_remaps_is_cleaned_without_copying() {
    let stats = clean_volumes(true);
    assert!(stats.remapped > 100, "{stats:?}");
    // Headers of victims are all that is read, and each has at least a block.
    assert!(stats.clean_read < 33 * stats.cleaned_segments, "{stats:?}");
}

/// The cleaner asks it once in a while, and copies.
#[test]
fn a_backing_that_cannot_remap_is_cleaned_by_copying() {
    let stats = clean_volumes(false);
    assert!(stats.sent(Sent::Cleaning) > 100 && stats.remapped == 0, "{stats:?}");
    assert!(stats.failed_remaps > 0, "{stats:?}");
    assert!(stats.failed_remaps * 4 < stats.cleaned_segments, "{stats:?}");
}

/// Nobody looks at a block that is remapped: its checksum goes along, so it stays as damaged as it was.
#[test]
fn a_damaged_block_stays_damaged_when_it_is_remapped() {
    let mut rig = Rig::new(64 * 160, 6000, remap_options());
    for lba in (0..60).step_by(20) {
        rig.write(lba, 20);
    }
    rig.retry(|rig| rig.volume.flush(1));
    rig.step();
    let place = |rig: &mut Rig| {
        let mut plan = ReadPlan::default();
        let mut buffer = vec![0; BLOCK];
        let range = Range { lba: Lba::new(5), blocks: 1 };
        rig.volume.read(range, Some(&mut buffer), &mut plan).unwrap();
        let at = plan.runs()[0].at;
        rig.memory.read(at.raw().into(), &mut buffer).unwrap();
        rig.volume.end_read(&plan);
        (at, plan.complete(&mut buffer).len())
    };
    let (before, damaged) = place(&mut rig);
    assert_eq!(damaged, 0);
    rig.memory.bytes[before.raw() as usize * BLOCK + 100] ^= 1;
    // The log segment is full of other blocks, which die.
    for _ in 0..3 {
        rig.write(20, 20);
        rig.write(40, 20);
    }
    for _ in 0..4 {
        rig.volume.want_cleaning();
        rig.step();
        rig.volume.want_checkpoint();
        rig.step();
    }
    let (after, damaged) = place(&mut rig);
    assert_ne!(before, after, "it was moved, {:?}", rig.volume.stats());
    assert!(rig.volume.stats().remapped > 0);
    assert_eq!(damaged, 1);
}

#[test]
fn single_blocks_of_an_indirection_unit_cannot_be_remapped() {
    let error = remap_options().check(4).unwrap_err();
    assert!(error.to_string().contains("clean by copying"), "{error}");
    assert_eq!(remap_options().check(1), Ok(()));
}
