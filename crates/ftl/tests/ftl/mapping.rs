//! The map against a `BTreeMap`, wear, and space, without power cuts.

use std::collections::{BTreeMap, BTreeSet};

use onefold_ftl::RemapScheme;
use onefold_ftl::{
    Ftl, FtlConfig, FtlError, Layout, RecoverError, RemapConfig, RemapOptions, RemapRange,
};
use onefold_nand::{FaultSpec, GeometrySpec, Media, NullMedia, Span};
use onefold_testkit::{CutMedia, fill, for_each_seed, stamp_of, version_of};
use onefold_units::convert::low32;
use onefold_units::{Cause, Lpn, Nanos, Rng};

use crate::common::{AT, Op, Setup, pairs, plain_config, read, spec};

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

/// A map that nothing but operations changes.
#[derive(Clone, Debug, Default)]
struct Plain {
    map: BTreeMap<u32, u64>,
    /// Units that the next flush unmaps.
    moving: BTreeSet<u32>,
}

impl Plain {
    fn version(&self, lpn: u32) -> u64 {
        self.map.get(&lpn).copied().unwrap_or(0)
    }

    /// Carries out an operation that was not refused.
    fn apply(&mut self, op: Op, version: u64) {
        match op {
            Op::Write { lpn, .. } => {
                self.map.insert(lpn, version);
                self.moving.remove(&lpn);
            }
            Op::Trim { lpn, count } => {
                for lpn in lpn..lpn + count {
                    self.map.remove(&lpn);
                }
            }
            Op::Remap { ranges, options } => self.remap(ranges, options),
            Op::Flush => {
                for lpn in std::mem::take(&mut self.moving) {
                    self.map.remove(&lpn);
                }
            }
            Op::Read { .. } | Op::Checkpoint | Op::Maintain(_) => {}
        }
    }

    fn remap(&mut self, ranges: [Option<RemapRange>; 3], options: RemapOptions) {
        let ranges: Vec<_> = ranges.into_iter().flatten().collect();
        let before = self.clone();
        let is_equal = |(dst, src): &(u32, u32)| before.version(*dst) == before.version(*src);
        let mut pairs = pairs(&ranges);
        pairs.retain(|pair| !options.verify_equal || is_equal(pair));
        if options.moves {
            for (_, src) in &pairs {
                self.map.remove(src);
            }
        }
        if options.moves_on_flush {
            self.moving.extend(pairs.iter().map(|(_, src)| *src));
        }
        for (dst, src) in pairs {
            self.moving.remove(&dst);
            match before.map.get(&src) {
                Some(version) => self.map.insert(dst, *version),
                None => self.map.remove(&dst),
            };
        }
    }

    /// Compares all units.
    fn check(&self, ftl: &mut Ftl<CutMedia>, setup: &Setup) {
        for lpn in 0..setup.units() {
            assert_eq!(ftl.is_mapped(Lpn::new(lpn)), self.map.contains_key(&lpn), "unit {lpn}");
            let data = read(ftl, setup, lpn).unwrap();
            assert_eq!(version_of(&data), Some(self.version(lpn)), "unit {lpn}: {setup:?}");
        }
    }
}

fn memory(setup: &Setup) -> Ftl<CutMedia> {
    setup.build(CutMedia::powered(&setup.geometry, setup.nvram_bytes()))
}

#[test]
fn equals_a_map_and_needs_no_bytes_to_count() {
    let name = ("onefold-ftl", "ftl", "equals_a_map_and_needs_no_bytes_to_count");
    for_each_seed(name, 400, |seed| {
        let mut rng = Rng::new(seed ^ 0xA11);
        let setup = Setup::random(&mut rng);
        let mut ftl = memory(&setup);
        let mut null = setup.build(NullMedia);
        let mut plain = Plain::default();
        for version in 1..600 {
            let op = Op::random(&mut rng, &setup, 10);
            let executed = apply(&mut ftl, &setup, op, version).unwrap();
            assert_eq!(apply(&mut null, &setup, op, version).unwrap(), executed);
            if let Op::Read { lpn } = op {
                let data = read(&mut ftl, &setup, lpn).unwrap();
                let _ = read(&mut null, &setup, lpn);
                assert_eq!(version_of(&data), Some(plain.version(lpn)));
            }
            if executed {
                plain.apply(op, version);
            }
            ftl.check().unwrap();
            assert_eq!(ftl.stats(), null.stats(), "after {op:?} with {setup:?}");
        }
        null.check().unwrap();
        plain.check(&mut ftl, &setup);
    });
}

/// The device with each scheme, and as many units as fit with all of them.
fn with_each_scheme(setup: &Setup) -> Option<Vec<Setup>> {
    let with = |scheme| {
        let remap = RemapConfig { scheme, ..setup.config.remap };
        Setup { config: FtlConfig { remap, ..setup.config }, ..*setup }
    };
    let fits = |setup: &Setup| Layout::new(&setup.geometry, &setup.config).is_ok();
    let setups = RemapScheme::ALL.map(with);
    setups.iter().all(fits).then(|| setups.to_vec())
}

/// A remap that each scheme can do, and none refuses for want of room.
fn for_each_scheme(rng: &mut Rng, op: Op) -> Op {
    match op {
        Op::Remap { ranges, options } => {
            let RemapOptions { moves, moves_on_flush, .. } = options;
            let verify_equal = !moves && !moves_on_flush && rng.below(3) == 0;
            let options = RemapOptions { atomic: false, id: None, verify_equal, ..options };
            Op::Remap { ranges, options }
        }
        op => op,
    }
}

/// The schemes differ in where their log is and what it costs, not in what the host sees: logs that are
/// full, collection and housekeeping come in between. Those that are models keep no log on the medium, but
/// the data.
#[test]
fn six_schemes_equal_a_plain_map() {
    let name = ("onefold-ftl", "ftl", "six_schemes_equal_a_plain_map");
    let (mut shared, mut fell_back, mut strided) = ([0; 6], [0; 6], [0; 6]);
    for_each_seed(name, 150, |seed| {
        let mut rng = Rng::new(seed ^ 0x516);
        let setups = loop {
            let setup = Setup::random(&mut rng);
            if let Some(setups) = with_each_scheme(&setup) {
                break setups;
            }
        };
        let mut ftls: Vec<_> = setups.iter().map(memory).collect();
        let mut plain = Plain::default();
        // Half of the operations remap: with the scheme of the last, all of them draw the same.
        let drawn = setups[5];
        for version in 1..400 {
            let op = Op::random(&mut rng, &drawn, 10);
            let op = for_each_scheme(&mut rng, op);
            plain.apply(op, version);
            for (ftl, setup) in ftls.iter_mut().zip(&setups) {
                apply(ftl, setup, op, version).unwrap();
                if let Op::Read { lpn } = op {
                    let data = read(ftl, setup, lpn).unwrap();
                    assert_eq!(version_of(&data), Some(plain.version(lpn)), "{setup:?}");
                }
            }
        }
        for (n, (ftl, setup)) in ftls.iter_mut().zip(&setups).enumerate() {
            ftl.check().unwrap();
            plain.check(ftl, setup);
            shared[n] += ftl.remap_stats().remapped;
            fell_back[n] += ftl.remap_stats().copied;
            strided[n] += ftl.remap_stats().strided_entries;
        }
    });
    if onefold_testkit::chosen_seed().is_none() {
        // All but the first share, all but the last run out of room or references now and then.
        assert!(shared[1..].iter().all(|units| *units > 0), "{shared:?}");
        assert!(fell_back[1..].iter().all(|units| *units > 0), "{fell_back:?}");
        assert!(strided[1..].iter().all(|entries| *entries > 0), "{strided:?}");
    }
}

/// `ftl.remap_mode = "paper"` (remap.md, H7): when the unit that a slot was written for is gone, nobody owns
/// the copy and every referrer is logged again; ours makes one of them the owner. The map is the same.
#[test]
fn paper_mode_absorbs_nothing() {
    for scheme in &RemapScheme::ALL[1..] {
        let (absorbed, moved) = share_and_collect(*scheme, true);
        assert_eq!(absorbed, 0, "{scheme:?}");
        let (absorbed, moved_by_ours) = share_and_collect(*scheme, false);
        assert!(absorbed > 0, "{scheme:?}");
        assert!(moved > moved_by_ours, "{scheme:?}: {moved} and {moved_by_ours} entries");
    }
}

/// Writes and copies until collection has moved shared slots: units absorbed and entries moved.
fn share_and_collect(scheme: RemapScheme, paper: bool) -> (u64, u64) {
    let setup = model_of(scheme, paper);
    let mut ftl = setup.build(NullMedia);
    let mut rng = Rng::new(7);
    let mut plain = Plain::default();
    for version in 1..4000 {
        let lpn = low32(rng.below(u64::from(setup.units())));
        let op = if rng.below(4) == 0 {
            let dst = low32(rng.below(u64::from(setup.units())));
            let range = RemapRange { dst: Lpn::new(dst), src: Lpn::new(lpn), len: 1 };
            Op::Remap { ranges: [Some(range), None, None], options: RemapOptions::default() }
        } else {
            Op::Write { lpn, stream: 0 }
        };
        apply(&mut ftl, &setup, op, version).unwrap();
        plain.apply(op, version);
    }
    ftl.check().unwrap();
    // There are no bytes to compare; but units that share a slot hold the same.
    for (a, b) in (0..setup.units()).flat_map(|a| (0..a).map(move |b| (Lpn::new(a), Lpn::new(b)))) {
        assert_eq!(ftl.is_mapped(a), plain.map.contains_key(&a.raw()));
        if ftl.is_mapped(a) && ftl.slot(a) == ftl.slot(b) {
            assert_eq!(plain.version(a.raw()), plain.version(b.raw()), "{a:?} and {b:?} share");
        }
    }
    (ftl.remap_stats().absorbed, ftl.remap_stats().moved_entries)
}

fn model_of(scheme: RemapScheme, paper: bool) -> Setup {
    let remap =
        RemapConfig { scheme, paper, log_bytes: 8192, segment_bytes: 128, ..RemapConfig::OFF };
    Setup::new(spec(18, 8, 4096, 4096), FtlConfig { remap, ..plain_config() }, 0.9).unwrap()
}

/// Paper mode loses data in a power cut by its rules (remap.md, H1, H2, H5): a device is never recovered
/// with it, nor with a scheme that is a model.
#[test]
fn models_are_never_recovered() {
    for scheme in &RemapScheme::ALL[1..] {
        for paper in [false, true] {
            let setup = model_of(*scheme, paper);
            let recovered = setup.recover(memory(&setup).into_media()).map(|_| ());
            let expected = match scheme {
                RemapScheme::Ln | RemapScheme::Lh if paper => Err(RecoverError::PaperMode),
                RemapScheme::Ln | RemapScheme::Lh => Ok(()),
                _ => Err(RecoverError::Model { scheme: scheme.name() }),
            };
            assert_eq!(recovered, expected);
        }
    }
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
                let ppn = ftl.slot(Lpn::new(lpn)).unwrap();
                assert!(ftl.nand_mut().media_mut().inner_mut().corrupt(ppn, 100));
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
        setup.faults =
            FaultSpec { read: 0.05, program: 0.001, slow: 0.05, seed, ..FaultSpec::default() };
        setup.config.relocate = seed % 2 == 0;
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

/// Where many programs fail, no superblock may be left for copies that were staged on one that failed. Collection makes them
/// again once there is one.
#[test]
fn copies_that_found_no_superblock_are_made_again() {
    for seed in 0..300 {
        let geometry = GeometrySpec { ways: 2, span: Span::Die, ..spec(14, 4, 8192, 4096) };
        let config = FtlConfig { gc_start: 0.05, gc_stop: 0.01, ..plain_config() };
        let mut setup = Setup::new(geometry, config, 0.2).unwrap();
        setup.faults = FaultSpec { program: 0.05, seed, ..FaultSpec::default() };
        let mut ftl = setup.build(NullMedia);
        let mut rng = Rng::new(seed);
        let ended = (0..3000).find_map(|_| {
            let lpn = low32(rng.below(u64::from(setup.units())));
            apply(&mut ftl, &setup, Op::Write { lpn, stream: 0 }, 1).err()
        });
        assert!(matches!(ended, None | Some(FtlError::NoSpace)), "{ended:?}");
    }
}

/// Writes a device full and over, and reads it, for so many rounds.
fn write_and_read<M: Media>(ftl: &mut Ftl<M>, setup: &Setup, rounds: u64) {
    let mut rng = Rng::new(5);
    let mut versions = vec![0; onefold_units::convert::index(setup.units())];
    for round in 1..=rounds {
        let lpn = low32(rng.below(u64::from(setup.units())));
        match apply(ftl, setup, Op::Write { lpn, stream: 0 }, round) {
            Ok(_) => versions[Lpn::new(lpn).index()] = round,
            Err(FtlError::NoSpace) => return,
            Err(error) => panic!("{error}"),
        }
        let lpn = low32(rng.below(u64::from(setup.units())));
        match read(ftl, setup, lpn) {
            Ok(data) if M::STORES => {
                let mut expected = setup.unit();
                let version = versions[Lpn::new(lpn).index()];
                if version > 0 {
                    fill(lpn, version, &mut expected);
                }
                assert_eq!(data, expected, "unit {lpn} in round {round}");
            }
            Ok(_) | Err(FtlError::Unreadable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if round.is_multiple_of(16) {
            ftl.check().unwrap_or_else(|error| panic!("{error} in round {round}"));
        }
    }
}

/// A superblock in which a read needed retries is emptied and used again; one in which a read failed is retired.
#[test]
fn superblocks_that_read_badly_are_emptied() {
    let setup = |faults| {
        let config = FtlConfig { relocate: true, ..plain_config() };
        let setup = Setup::new(spec(40, 8, 4096, 4096), config, 0.7).unwrap();
        Setup { faults, ..setup }
    };
    let retried = setup(FaultSpec { slow: 0.05, slow_by: 3, seed: 1, ..FaultSpec::default() });
    let mut ftl = retried.build(CutMedia::powered(&retried.geometry, retried.nvram_bytes()));
    write_and_read(&mut ftl, &retried, 3000);
    let stats = ftl.stats();
    assert!(stats.slow.reads > 100 && stats.slow.programs > 100, "{stats:?}");
    assert!(stats.relocated > 50, "{stats:?}");
    assert_eq!((stats.media_failures, ftl.space().bad_superblocks), (0, 0));

    let failed = setup(FaultSpec { read: 0.0005, seed: 1, ..FaultSpec::default() });
    let mut ftl = failed.build(CutMedia::powered(&failed.geometry, failed.nvram_bytes()));
    write_and_read(&mut ftl, &failed, 3000);
    let (stats, bad) = (ftl.stats(), ftl.space().bad_superblocks);
    assert!(stats.media_failures > 0 && bad > 0, "{stats:?}");
    assert!(u64::from(bad) <= stats.relocated, "{bad} of {stats:?}");

    // Without the rule nothing is moved or retired.
    let mut left = retried;
    left.config.relocate = false;
    left.faults.read = 0.001;
    let mut ftl = left.build(CutMedia::powered(&left.geometry, left.nvram_bytes()));
    write_and_read(&mut ftl, &left, 3000);
    assert_eq!((ftl.stats().relocated, ftl.space().bad_superblocks), (0, 0));
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

/// Heads are always read; of what was programmed since the checkpoint, tails of complete superblocks
/// and spare areas of open ones; and the log. All dies read in parallel, and NVRAM beside them
/// (remap.md, section 14).
#[test]
fn a_recovery_reads_what_the_checkpoint_does_not_know() {
    let geometry = GeometrySpec { channels: 2, ..spec(18, 8, 4096, 4096) };
    let config = FtlConfig { metadata_pages: true, ..plain_config() };
    let setup = Setup::new(geometry, config, 0.8).unwrap();
    let mut ftl = setup.build(NullMedia);
    let read_ns = 40_000;
    // Pages of heads, map, tails, open superblocks and log.
    let expect = |ftl: &Ftl<NullMedia>, superblocks, pages: [u64; 5]| {
        let cost = ftl.recovery_cost();
        let found =
            [cost.head_pages, cost.map_pages, cost.tail_pages, cost.scanned_pages, cost.log_pages];
        assert_eq!((cost.superblocks, found), (superblocks, pages));
        assert_eq!(cost.flash_bytes(4096), 4096 * pages.iter().sum::<u64>());
        assert_eq!(cost.nvram_bytes, setup.nvram_bytes());
        let [heads, map, tails, scanned, log] = pages;
        let rounds = [heads, map, tails + scanned, log].map(|pages| pages.div_ceil(2));
        assert_eq!(cost.time.get(), read_ns * rounds.iter().sum::<u64>());
    };
    let write = |ftl: &mut Ftl<NullMedia>, lpns: std::ops::Range<u32>| {
        for lpn in lpns {
            apply(ftl, &setup, Op::Write { lpn, stream: 0 }, 1).unwrap();
        }
    };
    expect(&ftl, 0, [18, 0, 0, 0, 0]);
    // Of 16 pages of a superblock the first is its head and the last its tail.
    write(&mut ftl, 0..5);
    expect(&ftl, 1, [18, 0, 0, 1 + 5, 0]);
    write(&mut ftl, 5..31);
    expect(&ftl, 3, [18, 0, 2, 1 + 3, 0]);
    ftl.checkpoint_now(Nanos::ZERO).unwrap();
    // What is open goes on; what is complete is in the map.
    expect(&ftl, 1, [18, 1, 0, 1 + 3, 0]);
    write(&mut ftl, 31..42);
    expect(&ftl, 1, [18, 1, 1, 0, 0]);
}
