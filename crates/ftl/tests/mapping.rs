//! The map against a `BTreeMap`, wear, and space, without power cuts.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{AT, Op, Setup, pairs, plain_config, read, spec};
use onefold_ftl::{Ftl, FtlConfig, FtlError, RemapOptions, RemapRange};
use onefold_nand::{FaultSpec, Media, MemoryMedia, NullMedia};
use onefold_testkit::{fill, for_each_seed, stamp_of, version_of};
use onefold_units::convert::low32;
use onefold_units::{Cause, Lpn, Nanos, Rng};

/// Carries out an operation with stamped units; versions are the numbers of operations. `false` if it
/// was refused.
fn apply<M: Media>(
    ftl: &mut Ftl<M>,
    setup: &Setup,
    op: Op,
    version: u64,
) -> Result<bool, FtlError> {
    match op {
        Op::Write { lpn, stream } => {
            let mut data = setup.unit();
            fill(lpn, version, &mut data);
            let data = if M::STORES { &data[..] } else { &[] };
            ftl.write(AT, Lpn::new(lpn), setup.geometry.pages_per_unit(), stream, data)?;
        }
        Op::Trim { lpn, count } => {
            ftl.trim(AT, Lpn::new(lpn), count)?;
        }
        Op::Read { lpn } => {
            read(ftl, setup, lpn)?;
        }
        Op::Flush => {
            ftl.flush(AT)?;
        }
        Op::Checkpoint => ftl.checkpoint_now(Nanos::ZERO)?,
        Op::Maintain(step) => ftl.maintain(Nanos::ZERO, step)?,
        Op::Remap { ranges, options } => {
            let ranges: Vec<_> = ranges.into_iter().flatten().collect();
            let done = ftl.remap(AT, &ranges, options)?;
            // Atomic remaps may be refused as a whole.
            return Ok(done.outcomes.iter().all(|outcome| outcome.skipped == 0));
        }
    }
    Ok(true)
}

/// What a remap does to a map, and to the set of units that the next flush unmaps.
fn remap_map(
    map: &mut BTreeMap<u32, u64>,
    moving: &mut BTreeSet<u32>,
    ranges: [Option<RemapRange>; 3],
    options: RemapOptions,
) {
    let ranges: Vec<_> = ranges.into_iter().flatten().collect();
    let pairs = pairs(&ranges);
    let before = map.clone();
    if options.moves {
        for (_, src) in &pairs {
            map.remove(src);
        }
    }
    if options.moves_on_flush {
        moving.extend(pairs.iter().map(|(_, src)| *src));
    }
    for (dst, src) in pairs {
        moving.remove(&dst);
        match before.get(&src) {
            Some(version) => map.insert(dst, *version),
            None => map.remove(&dst),
        };
    }
}

fn memory(setup: &Setup) -> Ftl<MemoryMedia> {
    setup.build(MemoryMedia::new(&setup.geometry, setup.nvram_bytes()))
}

#[test]
fn equals_a_map_and_needs_no_bytes_to_count() {
    let name = ("onefold-ftl", "mapping", "equals_a_map_and_needs_no_bytes_to_count");
    for_each_seed(name, 400, |seed| {
        let mut rng = Rng::new(seed ^ 0xA11);
        let setup = Setup::random(&mut rng);
        let mut ftl = memory(&setup);
        let mut null = setup.build(NullMedia);
        let (mut map, mut moving) = (BTreeMap::new(), BTreeSet::new());
        for version in 1..600 {
            let op = Op::random(&mut rng, &setup, 10);
            let executed = apply(&mut ftl, &setup, op, version).unwrap();
            assert_eq!(apply(&mut null, &setup, op, version).unwrap(), executed);
            match op {
                Op::Write { lpn, .. } => {
                    map.insert(lpn, version);
                    moving.remove(&lpn);
                }
                Op::Trim { lpn, count } => {
                    for lpn in lpn..lpn + count {
                        map.remove(&lpn);
                    }
                }
                Op::Read { lpn } => {
                    let data = read(&mut ftl, &setup, lpn).unwrap();
                    let _ = read(&mut null, &setup, lpn);
                    assert_eq!(version_of(&data), Some(map.get(&lpn).copied().unwrap_or(0)));
                }
                Op::Remap { ranges, options } if executed => {
                    remap_map(&mut map, &mut moving, ranges, options);
                }
                Op::Flush => {
                    for lpn in std::mem::take(&mut moving) {
                        map.remove(&lpn);
                    }
                }
                Op::Checkpoint | Op::Remap { .. } | Op::Maintain(_) => {}
            }
            ftl.check().unwrap();
            assert_eq!(ftl.stats(), null.stats(), "after {op:?} with {setup:?}");
        }
        null.check().unwrap();
        for lpn in 0..setup.units() {
            let expected = map.get(&lpn).copied();
            assert_eq!(ftl.is_mapped(Lpn::new(lpn)), expected.is_some());
            let data = read(&mut ftl, &setup, lpn).unwrap();
            assert_eq!(version_of(&data), Some(expected.unwrap_or(0)));
        }
    });
}

/// A lost unit carries no bytes; what was staged after it used to move into its place.
#[test]
fn lost_units_do_not_shift_their_neighbours() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let config = FtlConfig { seed, ..plain_config() };
        let setup = Setup::new(spec(14, 6, 16384, 4096), config, 0.8).unwrap();
        let mut ftl = memory(&setup);
        let mut map = BTreeMap::new();
        for version in 1..400 {
            let lpn = low32(rng.below(u64::from(setup.units())));
            apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, version).unwrap();
            map.insert(lpn, version);
            if version % 20 == 0 {
                apply(&mut ftl, &setup, Op::Flush, version).unwrap();
                let ppn = onefold_units::Ppn::new(ftl.touch(Lpn::new(lpn)));
                assert!(ftl.nand_mut().media_mut().corrupt(ppn, 100));
            }
        }
        let mut unreadable = 0;
        for (lpn, version) in map {
            match read(&mut ftl, &setup, lpn) {
                Ok(data) => assert_eq!(stamp_of(lpn, &data), Some(version), "unit {lpn}"),
                Err(FtlError::Unreadable { lpn: named }) => {
                    assert_eq!(named, lpn);
                    unreadable += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!((1..=19).contains(&unreadable), "{unreadable} of at most 19 are lost");
        ftl.check().unwrap();
    }
}

#[test]
fn wear_levelling_keeps_erase_counts_together() {
    let run = |wear_threshold: u32| {
        let config = FtlConfig { wear_threshold, gc_start: 0.1, ..plain_config() };
        let setup = Setup::new(spec(40, 16, 4096, 4096), config, 0.8).unwrap();
        let mut ftl = setup.build(NullMedia);
        let units = u64::from(setup.units());
        for lpn in 0..setup.units() {
            apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 1).unwrap();
        }
        let mut rng = Rng::new(3);
        for _ in 0..200_000 {
            // A tenth of the units takes all writes.
            let lpn = low32(rng.below(units / 10));
            apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 2).unwrap();
        }
        let wear = ftl.wear();
        (wear.max - wear.min, ftl.programs().of(Cause::Wear))
    };
    let (apart, moved) = run(0);
    assert_eq!(moved, 0);
    assert!(apart > 200, "without levelling cold superblocks stay at a spread of {apart}");
    for threshold in [8, 32] {
        let (apart, moved) = run(threshold);
        assert!(moved > 0);
        assert!(apart <= threshold + 12, "spread {apart} with threshold {threshold}");
    }
}

#[test]
fn worn_out_superblocks_retire_until_none_is_left() {
    let config = FtlConfig { endurance: 20, ..plain_config() };
    let setup = Setup::new(spec(20, 8, 4096, 4096), config, 0.5).unwrap();
    let mut ftl = setup.build(NullMedia);
    let mut rng = Rng::new(8);
    let mut writes: u32 = 0;
    let end = loop {
        let lpn = low32(rng.below(u64::from(setup.units())));
        match apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 1) {
            Ok(_) => writes += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(end, FtlError::NoSpace);
    // 20 superblocks of 8 slots, 20 erases each, are at most 3200 programs.
    assert!((1000..3200).contains(&writes), "{writes} writes");
    assert!(ftl.wear().max <= 20);
    assert!(ftl.space().bad_superblocks > 5);
}

#[test]
fn retired_superblocks_stay_retired() {
    let config = FtlConfig { endurance: 20, ..plain_config() };
    let setup = Setup::new(spec(20, 8, 4096, 4096), config, 0.5).unwrap();
    let mut ftl = memory(&setup);
    let mut rng = Rng::new(8);
    while ftl.space().bad_superblocks < 3 {
        let lpn = low32(rng.below(u64::from(setup.units())));
        apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 1).unwrap();
    }
    apply(&mut ftl, &setup, Op::Flush, 1).unwrap();
    let before = ftl.wear();
    let (ftl, _) = setup.recover(ftl.into_media()).unwrap();
    assert_eq!(ftl.space().bad_superblocks, 3);
    assert_eq!(ftl.wear(), before);
}

/// Without bytes there is no marker for a lost unit: the map remembers it. A marker that was staged
/// stayed valid for ever, and its superblock could never be emptied.
#[test]
fn faults_without_bytes_keep_the_books() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut setup = Setup::random(&mut rng);
        setup.faults = FaultSpec { read: 0.05, program: 0.001, seed, ..FaultSpec::default() };
        let mut ftl = setup.build(NullMedia);
        for version in 1..1500 {
            let op = Op::random(&mut rng, &setup, 10);
            match apply(&mut ftl, &setup, op, version) {
                Ok(_) | Err(FtlError::Unreadable { .. } | FtlError::Remap(_)) => {}
                Err(FtlError::NoSpace) => break,
                Err(error) => panic!("{error}"),
            }
            ftl.check().unwrap_or_else(|e| panic!("seed {seed}: {e} after {op:?} with {setup:?}"));
        }
    }
}

#[test]
fn trims_free_space() {
    let setup = Setup::new(spec(20, 8, 4096, 4096), plain_config(), 1.0).unwrap();
    let mut ftl = setup.build(NullMedia);
    let mut rng = Rng::new(4);
    let overwrite = |ftl: &mut Ftl<NullMedia>, rng: &mut Rng, units: u32| {
        let before = ftl.stats();
        for _ in 0..4000 {
            let lpn = low32(rng.below(u64::from(units)));
            apply(ftl, &setup, Op::Write { lpn, stream: 0 }, 1).unwrap();
        }
        ftl.stats().since(&before).programs.of(Cause::Gc)
    };
    for lpn in 0..setup.units() {
        apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 1).unwrap();
    }
    let full = overwrite(&mut ftl, &mut rng, setup.units() / 2);
    let half = setup.units() / 2;
    ftl.trim(AT, Lpn::new(half), setup.units() - half).unwrap();
    let trimmed = overwrite(&mut ftl, &mut rng, half);
    assert!(trimmed * 4 < full, "collection moved {full} pages before the trim, {trimmed} after");
}
