//! One rule each: what random operations meet too rarely.

use onefold_ftl::{
    FtlConfig, FtlError, Maintenance, RemapConfig, RemapOptions, RemapRange, RemapScheme,
};
use onefold_testkit::{Cut, CutMedia, Power, fill, version_of};
use onefold_units::convert::low32;
use onefold_units::{Lpn, Rng};

use super::rig::{CUTS, Rig};
use crate::common::{AT, COPY, Op, Setup, pick, plain_config, read, spec, victim};

fn device(scheme: RemapScheme, segments: u64) -> Setup {
    let remap =
        RemapConfig { scheme, log_bytes: segments * 128, segment_bytes: 128, ..RemapConfig::OFF };
    Setup::new(spec(18, 8, 4096, 4096), FtlConfig { remap, ..plain_config() }, 0.9).unwrap()
}

fn range(dst: u32, src: u32, len: u32) -> RemapRange {
    RemapRange { dst: Lpn::new(dst), src: Lpn::new(src), len }
}

fn copy(dst: u32, src: u32) -> Op {
    Op::Remap { ranges: [Some(range(dst, src, 1)), None, None], options: COPY }
}

fn write(lpn: u32) -> Op {
    Op::Write { lpn, stream: 0 }
}

fn version(ftl: &mut onefold_ftl::Ftl<CutMedia>, setup: &Setup, lpn: u32) -> Option<u64> {
    version_of(&read(ftl, setup, lpn).unwrap())
}

/// The parts that were done before had noted their sources, and the next flush unmapped those.
#[test]
fn a_move_on_flush_that_fails_in_a_part_moves_nothing() {
    const UNITS: u32 = 20;
    let setup = device(RemapScheme::Ln, 6);
    let mut ftl =
        setup.build(CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, 1));
    // No two neighbours lie side by side: each needs an entry, and the log takes only some.
    for lpn in (0..UNITS).rev() {
        let mut data = setup.unit();
        fill(lpn, u64::from(lpn) + 1, &mut data);
        ftl.write(AT, Lpn::new(lpn), 1, 0, &data).unwrap();
    }
    let last = ftl.slot(Lpn::new(UNITS - 1)).unwrap();
    assert!(ftl.nand_mut().media_mut().inner_mut().corrupt(last, 9));
    let options = RemapOptions { moves_on_flush: true, ..COPY };
    let failed = ftl.remap(AT, &[range(UNITS, 0, UNITS)], options);
    assert_eq!(failed, Err(FtlError::Unreadable { lpn: UNITS - 1 }));
    assert_eq!(ftl.slot(Lpn::new(UNITS)), ftl.slot(Lpn::new(0)), "the first part was done");
    ftl.flush(AT).unwrap();
    for lpn in 0..UNITS - 1 {
        assert_eq!(version(&mut ftl, &setup, lpn), Some(u64::from(lpn) + 1));
    }
}

/// A move that a power cut of the host takes in part leaves the content in one place at least.
#[test]
fn a_moved_unit_is_somewhere() {
    for (seed, scheme) in (0..120).zip([RemapScheme::Ln, RemapScheme::None].into_iter().cycle()) {
        let setup = device(scheme, 8);
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Host, seed);
        let mut ftl = setup.build(media);
        let mut data = setup.unit();
        fill(0, 7, &mut data);
        ftl.write(AT, Lpn::new(0), 1, 0, &data).unwrap();
        ftl.flush(AT).unwrap();
        let options = RemapOptions { moves: true, ..COPY };
        ftl.remap(AT, &[range(1, 0, 1)], options).unwrap();
        let mut media = ftl.into_media();
        media.restore();
        let (mut ftl, _) = setup.recover(media).unwrap();
        let found = [0, 1].map(|lpn| version(&mut ftl, &setup, lpn));
        assert!(found.contains(&Some(7)), "{found:?}, {scheme:?}, seed {seed}");
    }
}

/// The write before the flush may name the target: the source is there until it is durable.
#[test]
fn the_source_of_a_move_on_flush_outlives_no_write() {
    let remap = RemapConfig {
        log_bytes: 1024,
        segment_bytes: 128,
        ..device(RemapScheme::Ln, 8).config.remap
    };
    let config = FtlConfig { remap, ..plain_config() };
    let setup = Setup::new(spec(18, 4, 16384, 4096), config, 0.9).unwrap();
    for (after, cut) in (0..6).flat_map(|after| CUTS.map(|cut| (after, cut))) {
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, after);
        let mut ftl = setup.build(media);
        let mut data = setup.unit();
        fill(0, 1, &mut data);
        ftl.write(AT, Lpn::new(0), 1, 0, &data).unwrap();
        ftl.flush(AT).unwrap();
        let options = RemapOptions { moves_on_flush: true, ..COPY };
        ftl.remap(AT, &[range(1, 0, 1)], options).unwrap();
        // It waits in a staged page.
        fill(2, 2, &mut data);
        ftl.write(AT, Lpn::new(2), 1, 0, &data).unwrap();
        ftl.nand_mut().media_mut().arm(after, cut);
        let _ = ftl.flush(AT);
        let mut media = ftl.into_media();
        media.restore();
        let (mut ftl, _) = setup.recover(media).unwrap();
        let [source, target, named] = [0, 1, 2].map(|lpn| version(&mut ftl, &setup, lpn));
        assert_eq!(target, Some(1));
        assert!(source == Some(1) || named == Some(2), "{cut:?} {after}: {source:?}, {named:?}");
    }
}

/// What a power cut left of the entries that were being written stays where it is.
#[test]
fn segments_from_before_a_power_cut_take_no_entries() {
    let setup = device(RemapScheme::Ln, 10);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&setup, Power::Host, seed);
        for lpn in 0..8 {
            assert!(rig.run(write(lpn)));
        }
        assert!(rig.run(Op::Flush));
        for round in 0..4 {
            for n in 0..3 {
                assert!(rig.run(copy(8 + 3 * round + n, 2 * n)));
            }
            rig = rig.recover(&mut rng, 0);
        }
    }
}

/// An entry outlived the slot it names. The slot is erased, and stays so when all else is durable.
#[test]
fn an_entry_without_its_slot_is_never_believed() {
    let setup = device(RemapScheme::Ln, 10);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&setup, Power::Host, seed);
        assert!(rig.run(write(0)) && rig.run(Op::Flush));
        assert!(rig.run(write(1)) && rig.run(copy(2, 1)));
        rig = rig.recover(&mut rng, 0);
        assert!(rig.run(Op::Flush));
        rig.recover(&mut rng, 0);
    }
}

/// A fuzzy checkpoint dumps the place that collection gave to a shared unit; the entry is from before.
#[test]
fn a_checkpoint_covers_no_entry_that_is_not_written() {
    let remap = device(RemapScheme::Ln, 40).config.remap;
    let config = FtlConfig { remap, gc_start: 0.3, victim: victim("fifo"), ..plain_config() };
    let setup = Setup::new(spec(18, 8, 4096, 4096), config, 0.9).unwrap();
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&setup, Power::Device, seed);
        rig.fill();
        rig.overwrite(&mut rng, 2 * setup.units());
        for _ in 0..3 {
            for _ in 0..16 {
                let [dst, src] = [0; 2].map(|_| low32(rng.below(u64::from(setup.units()))));
                assert!(rig.run(copy(dst, src)));
            }
            // All entries are older than the cut; collection goes on while the map is dumped.
            assert!(rig.run(Op::Checkpoint) && rig.run(Op::Maintain(Maintenance::Checkpoint)));
            let overwrites = 2 + low32(rng.below(10));
            rig.overwrite(&mut rng, overwrites);
            assert!(rig.run(Op::Maintain(Maintenance::Checkpoint)));
            assert!(rig.run(Op::Maintain(Maintenance::Checkpoint)));
            rig = rig.recover(&mut rng, 0);
        }
    }
}

/// Garbage in a log superblock that was about to be erased is no rot. Few operations are erases: each of
/// the first ones is torn in turn.
#[test]
fn a_torn_erase_of_log_pages_is_no_damage() {
    let setup = device(RemapScheme::Lh, 8);
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&setup, Power::Device, seed);
        rig.fill();
        rig.arm(seed, Cut::Torn);
        let _ = (0..60).all(|n| {
            let op = copy(16 + n % 8, low32(rng.below(16)));
            rig.run(op)
                && rig.run(Op::Maintain(Maintenance::DestageLog))
                && rig.run(Op::Flush)
                && rig.run(Op::Maintain(Maintenance::CollectLog))
        });
        rig.recover(&mut rng, 0);
    }
}

/// The same with the power of the host, which may keep the note of the erase and lose what replaced the
/// pages.
#[test]
fn log_pages_count_until_what_replaces_them_is_durable() {
    let setup = device(RemapScheme::Lh, 8);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&setup, Power::Host, seed);
        rig.fill();
        for round in 0..3 {
            rig.arm(40 + rng.below(160), Cut::After);
            let _ = (0..40).all(|n| {
                let op = copy(16 + (n + round) % 8, low32(rng.below(16)));
                rig.run(op)
                    && rig.run(Op::Maintain(Maintenance::DestageLog))
                    && (n % 4 > 0 || rig.run(Op::Flush))
                    && rig.run(Op::Maintain(Maintenance::CollectLog))
            });
            rig = rig.recover(&mut rng, 0);
        }
    }
}

/// Every unit that fits, with one frontier for host and collection: 6 of the 12 superblocks are in reserve,
/// two of them for checkpoints.
fn full_device() -> Setup {
    let config = FtlConfig { separate_gc: false, victim: victim("fifo"), ..plain_config() };
    let mut setup = Setup::new(spec(12, 8, 4096, 4096), config, 1.0).unwrap();
    setup.config.logical_units = 47;
    setup
}

/// Erases that a power cut of the host undoes are no reserve: collection would have nowhere to copy to.
#[test]
fn a_full_device_survives_erases_that_are_undone() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&full_device(), Power::Host, seed);
        rig.fill();
        rig.overwrite(&mut rng, 100);
        assert!(rig.run(Op::Checkpoint));
        for _ in 0..4 {
            let overwrites = 10 + low32(rng.below(60));
            rig.overwrite(&mut rng, overwrites);
            rig = rig.recover(&mut rng, 0);
            rig.overwrite(&mut rng, 30);
        }
    }
}

/// Power fails while the superblock that collection took holds host data: there has to be another.
#[test]
fn a_full_device_survives_collection_that_is_cut_off() {
    let units = u64::from(full_device().units());
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(&full_device(), Power::Device, seed);
        rig.fill();
        rig.overwrite(&mut rng, 100);
        assert!(rig.run(Op::Checkpoint));
        for _ in 0..10 {
            rig.arm(rng.below(40), *pick(&mut rng, &CUTS));
            while rig.run(write(low32(rng.below(units)))) {}
            rig = rig.recover(&mut rng, 0);
        }
    }
}
