//! Thin volumes export more than they can hold.

use onefold_units::{Lba, Rng};
use onefold_volume::{MemberId, Options, Range, Refusal};

use crate::{Rig, options, stamp};

const BACKING: u64 = 64 * 160;

/// Of 160 log segments, sixteen times what they can hold.
const LOGICAL: u64 = 140_000;

/// Writes blocks, if there is space.
fn try_write(rig: &mut Rig, lba: u64, blocks: u64) -> Result<(), Refusal> {
    rig.version += 1;
    let version = rig.version;
    let data: Vec<u8> = (lba..lba + blocks).flat_map(|lba| stamp(lba, version)).collect();
    let range = Range { lba: Lba::new(lba), blocks };
    for _ in 0..1000 {
        match rig.volume.write(1, range, Some(&data), false) {
            Ok(()) => {
                rig.set(MemberId::DEVICE, lba, blocks, version);
                return Ok(());
            }
            Err(Refusal::Busy) => rig.step(),
            Err(refusal) => return Err(refusal),
        }
    }
    panic!("busy for ever: {:?}", rig.volume.stats());
}

/// Writes single blocks anywhere until one has no space; gives how many there are.
fn fill_anywhere(rig: &mut Rig, rng: &mut Rng) -> u64 {
    for count in 0.. {
        match try_write(rig, rng.below(LOGICAL), 1) {
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
                try_write(&mut rig, there[at], 1).expect("space for what is overwritten");
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
        })
    };
    let most = layout(1).unwrap().thin_max();
    assert_eq!(most, 16 * layout(1).unwrap().logical_max());
    assert!(layout(most).unwrap().is_thin());
    assert!(layout(most).unwrap().not_thin().unwrap_err().to_string().contains("thin volume of"));
    assert!(layout(most + 1).is_err());
    assert!(!layout(layout(1).unwrap().logical_max()).unwrap().is_thin());
}
