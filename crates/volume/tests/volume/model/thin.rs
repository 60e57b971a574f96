//! Thin volumes export more than they can hold.

use onefold_units::Rng;
use onefold_volume::{MemberId, Options, Refusal, SnapshotError};

use super::{Rig, options};

const BACKING: u64 = 64 * 160;

/// Of 160 log segments, sixteen times what they can hold.
const LOGICAL: u64 = 140_000;

/// Writes single blocks anywhere until one has no space; gives how many there are.
fn fill_anywhere(rig: &mut Rig, rng: &mut Rng) -> u64 {
    for count in 0.. {
        match rig.try_write(MemberId::DEVICE, rng.below(LOGICAL), 1) {
            Ok(()) => {}
            Err(Refusal::NoSpace) => return count,
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    unreachable!("it cannot hold all of them")
}

/// The worst for the map: hardly two blocks of a page are mapped at first.
#[test]
fn a_thin_volume_that_is_full_refuses_what_is_new_and_nothing_else() {
    for seed in 0..2 {
        let rng = &mut Rng::new(seed);
        let map_pages = if seed % 2 == 0 { usize::MAX } else { 16 };
        let mut rig = Rig::new(BACKING, LOGICAL, Options { map_pages, ..options() });
        assert!(rig.volume.layout().is_thin());
        for round in 0..3 {
            // The first time it holds most of what the log has, then half of that.
            let least = if round == 0 { BACKING / 3 } else { BACKING / 8 };
            assert!(fill_anywhere(&mut rig, rng) > least);
            let usage = rig.volume.usage();
            assert!(usage.data_blocks >= usage.capacity_blocks, "{usage:?}");
            // What is there can be written again as often as one likes.
            let model = rig.models[&MemberId::DEVICE].clone();
            let there: Vec<u64> =
                (0..LOGICAL).filter(|lba| model[usize::try_from(*lba).unwrap()] > 0).collect();
            for _ in 0..1500 {
                let at = usize::try_from(rng.below(there.len() as u64)).unwrap();
                rig.try_write(MemberId::DEVICE, there[at], 1)
                    .expect("space for what is overwritten");
            }
            rig.read_all();
            rig.reopen(round % 2 == 0);
            rig.read_all();
            // Trims make room for as much.
            let half = LOGICAL / 2;
            rig.trim(half * (round % 2), half);
        }
        let wrong = rig.volume.recount();
        assert!(wrong.as_ref().is_none_or(Vec::is_empty), "{wrong:?}");
    }
}

/// A trim of a part of a page that others have as well frees nothing, and the page needs an image of its own. Trims are never
/// refused, so no more clones come than can all come to differ everywhere.
#[test]
fn clones_of_a_full_volume_may_come_to_differ_everywhere() {
    const PAGES: u64 = 98;
    let rng = &mut Rng::new(5);
    let mut rig = Rig::new(BACKING, PAGES * 1024, options());
    for page in 0..PAGES {
        rig.try_write(MemberId::DEVICE, page * 1024, 8).unwrap();
    }
    let mut clones = Vec::new();
    let refusal = loop {
        match rig.try_make(MemberId::DEVICE, &format!("c{}", clones.len()), true) {
            Ok(clone) => clones.push(clone),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refusal, SnapshotError::NoSpace { .. }) && clones.len() > 5, "{refusal}");
    while rig.try_write(MemberId::DEVICE, rng.below(PAGES * 1024), 1).is_ok() {}
    for (clone, page) in clones.iter().flat_map(|clone| (0..PAGES).map(move |page| (*clone, page)))
    {
        let lba = page * 1024 + u64::from(clone.raw() % 7);
        rig.trim_of(clone, lba, 1);
    }
    rig.retry(|rig| rig.volume.flush(4));
    rig.reopen(false);
    assert!(rig.assert_counts());
    for clone in clones {
        rig.delete(clone);
    }
    rig.free();
    rig.try_write(MemberId::DEVICE, 0, 200).unwrap();
    assert!(rig.assert_counts());
}

/// What can be exported ends where the map of it could not be held.
#[test]
fn a_thin_volume_has_a_limit() {
    let layout = |logical_blocks| {
        onefold_volume::Layout::new(onefold_volume::Geometry {
            backing_blocks: BACKING,
            segment_blocks: 64,
            zone_blocks: 0,
            unit_blocks: 1,
            logical_blocks,
            compress: None,
        })
    };
    let most = layout(1).unwrap().thin_max();
    assert_eq!(most, 16 * layout(1).unwrap().logical_max());
    assert!(layout(most).unwrap().is_thin());
    assert!(layout(most).unwrap().not_thin().unwrap_err().to_string().contains("thin volume of"));
    assert!(layout(most + 1).is_err());
    assert!(!layout(layout(1).unwrap().logical_max()).unwrap().is_thin());
}
