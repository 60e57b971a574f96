//! Scrubs find all that is damaged and nothing else, whatever goes on beside them.

use std::collections::BTreeSet;

use onefold_format::volume::{
    BatchHeader, DirectoryBlock, MetaKind, label_addresses, root_addresses,
};
use onefold_testkit::for_each_seed;
use onefold_units::convert::{index64, u64_from};
use onefold_units::{Lba, Nanos, Rng};
use onefold_volume::{
    Finding, MemberId, Range, ScrubState, Scrubbed, Sent, Stats, Volume, drive, inspect, mount,
    mount_read_only, scrub, settle,
};

use super::damage::{setup, worked};
use crate::harness::disk::Disk;
use crate::harness::image::{Image, block};
use crate::harness::ops::{random_op, work};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Rig};
use crate::harness::roots::newest_body;
use crate::harness::setup::{Setup, UUID, pick};
use crate::harness::stamp::{BLOCK, stamped};
use crate::harness::zones::ZoneSetup;

fn scrubbed(disk: &mut Disk, mend: bool) -> Scrubbed {
    scrub(disk, setup().backing_blocks, mend, |_| ()).expect("a volume that opens")
}

/// The blocks of the device that are mapped, and where they lie.
fn places(image: &Image) -> Vec<(Lba, u64)> {
    let mut disk = Disk::new(image.clone());
    let (mut volume, ..) =
        mount_read_only(&mut disk, setup().backing_blocks, setup().options).expect("it opens");
    let blocks = volume.layout().geometry().logical_blocks;
    let mut place = |lba| volume.look_up(&mut disk, MemberId::DEVICE, lba);
    let all = (0..blocks).map(Lba::new).filter_map(|lba| Some((lba, place(lba)?.0)));
    all.filter(|(_, at)| at.is_block()).map(|(lba, at)| (lba, at.raw().into())).collect()
}

#[test]
fn every_damaged_block_of_data_is_found_and_no_other() {
    for seed in 0..4 {
        let (image, _) = worked(seed);
        let mut rng = Rng::new(seed);
        let mapped = places(&image);
        let clean = scrubbed(&mut Disk::new(image.clone()), false);
        assert_eq!((clean.found, clean.state), (0, ScrubState::Done));
        assert!(clean.checked > u64_from(mapped.len()), "data, and what checkpoints wrote");
        let mut damaged = image.clone();
        let mut expected = BTreeSet::new();
        for _ in 0..=rng.below(20) {
            let (lba, at) = pick(&mut rng, &mapped);
            if expected.insert(lba) {
                damaged.flip(at, index64(rng.below(u64_from(BLOCK * 8))));
            }
        }
        for mend in [false, true] {
            let mut disk = Disk::new(damaged.clone());
            let report = scrubbed(&mut disk, mend);
            let found = report.damage.iter().map(|damage| match damage.finding {
                Finding::Data { member: MemberId::DEVICE, lba, .. } => lba,
                other => panic!("{other:?}"),
            });
            assert_eq!(found.collect::<BTreeSet<_>>(), expected);
            assert_eq!((report.found, report.mended), (u64_from(expected.len()), 0));
            assert!(report.is_damaged());
            assert_eq!(disk.volatile(), 0);
            let changed = (0..image.blocks()).any(|at| disk.get(at) != damaged.get(at));
            assert_eq!(changed, mend, "without mending nothing is written");
        }
    }
}

/// Damage of a snapshot's block is told with its member.
#[test]
fn damage_of_a_snapshot_is_found() {
    let mut rig = Rig::new(setup(), 5);
    assert!(rig.run(Op::Write { lba: 7, blocks: 1, fua: true }));
    assert!(rig.settle() && rig.run(Op::Snapshot) && rig.settle());
    let at = places(rig.disk.view())[0].1;
    assert!(rig.run(Op::Write { lba: 7, blocks: 1, fua: true }) && rig.settle());
    let mut image = rig.disk.view().clone();
    image.flip(at, 77);
    let report = scrubbed(&mut Disk::new(image), true);
    let [damage] = report.damage[..] else { panic!("{report:?}") };
    let Finding::Data { member, lba, .. } = damage.finding else { panic!("{damage:?}") };
    assert_eq!(lba, Lba::new(7));
    assert_ne!(member, MemberId::DEVICE);
}

fn is_header(image: &Image, at: u64) -> bool {
    BatchHeader::decode(&image.get(at)[..], &UUID, at).is_ok()
}

/// A header that rots: what it lists can be read, and what comes behind it is still looked at.
#[test]
fn damaged_headers_are_found() {
    let (image, _) = worked(1);
    // After an opening, so that no header is needed to find what came last.
    let mut disk = Disk::new(image);
    scrubbed(&mut disk, true);
    let image = disk.view().clone();
    let mapped = places(&image);
    let mut rng = Rng::new(1);
    for _ in 0..40 {
        let (_, at) = pick(&mut rng, &mapped);
        let header = (0..at).rev().find(|at| is_header(&image, *at)).expect("a header");
        let mut damaged = image.clone();
        damaged.flip(header, 900);
        // Behind it in another batch.
        let next = (at..image.blocks()).find(|at| is_header(&image, *at));
        let behind = mapped
            .iter()
            .find(|(_, at)| next.is_some_and(|next| *at > next && at / 64 == header / 64));
        if let Some((_, at)) = behind {
            damaged.flip(*at, 900);
        }
        let report = scrubbed(&mut Disk::new(damaged), false);
        let header = u32::try_from(header).expect("a small volume");
        let findings: Vec<Finding> = report.damage.iter().map(|damage| damage.finding).collect();
        let is_told =
            |finding: &Finding| matches!(finding, Finding::Header { at } if at.raw() == header);
        assert!(findings.iter().any(is_told), "{findings:?}");
        assert_eq!(findings.len(), 1 + usize::from(behind.is_some()), "{findings:?}");
    }
}

/// Opens a volume with all of its map in memory, damages it below, and scrubs it.
fn scrub_open(image: &Image, damage: impl FnOnce(&mut Image, &Volume)) -> (Disk, Scrubbed, Stats) {
    let (blocks, options) = (setup().backing_blocks, setup().options);
    let mut disk = Disk::new(image.clone());
    let (mut volume, _) = mount(&mut disk, blocks, options).expect("it opens");
    drive(&mut volume, &mut disk, Nanos::new(1));
    let mut below = disk.view().clone();
    damage(&mut below, &volume);
    let mut disk = Disk::new(below);
    volume.start_scrub(Nanos::ZERO).expect("it begins");
    drive(&mut volume, &mut disk, Nanos::new(2));
    let (report, stats) = (volume.scrubbed().clone(), *volume.stats());
    volume.close();
    assert!(settle(&mut volume, &mut disk, Nanos::new(3)));
    (disk, report, stats)
}

/// Nothing is left of damage that was mended.
fn assert_whole(disk: &Disk, oracle: &Oracle) {
    let mut disk = Disk::new(disk.view().clone());
    let found = inspect(&mut disk, setup().backing_blocks, true).expect("it opens").findings;
    assert!(found.iter().all(Finding::is_repairable), "{found:?}");
    let rig = Rig::open(setup(), disk, oracle.clone(), 1).unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(rig.oracle.now(0), oracle.now(0));
}

#[test]
fn what_is_in_memory_is_written_anew() {
    let mut kinds = BTreeSet::new();
    for seed in 0..24 {
        let (image, oracle) = worked(seed % 4);
        let mut rng = Rng::new(seed);
        let (disk, report, _) = scrub_open(&image, |below, _| {
            let (at, _) = pick(&mut rng, &metas(below));
            below.flip(at, index64(rng.below(u64_from(BLOCK * 8))));
        });
        assert_eq!(report.state, ScrubState::Done);
        for damage in &report.damage {
            let Finding::Meta { kind, .. } = damage.finding else { panic!("{damage:?}") };
            let can = !matches!(kind, MetaKind::Run | MetaKind::RunIndex);
            assert_eq!(damage.mended, can, "{damage:?}");
            kinds.insert(kind.code());
        }
        if !report.is_damaged() {
            assert_whole(&disk, &oracle);
        }
    }
    assert!(kinds.len() >= 4, "{kinds:?}");
}

/// It is written anew by the next checkpoint, however many other pages changed.
#[test]
fn a_page_that_is_in_memory_is_the_next_one_to_be_written() {
    const PAGES: u64 = 40;
    let mut rig = Rig::new(Setup::of(64 * 200, PAGES * 1024, setup().options), 4);
    let (blocks, options) = (rig.setup.backing_blocks, rig.setup.options);
    for _ in 0..15 {
        for page in 0..PAGES {
            assert!(rig.run(Op::Write { lba: page * 1024, blocks: 2, fua: false }));
        }
        assert!(rig.run(Op::Checkpoint) && rig.settle());
    }
    let image = rig.disk.view();
    let body = newest_body(image, &root_addresses(blocks));
    let at = u64::from(body.members[0].directory[0].location.raw());
    let directory = DirectoryBlock::decode(&image.get(at)[..], &UUID, at).expect("whole");
    for entry in directory.entries.iter().filter(|entry| entry.page.is_block()).step_by(3) {
        let mut below = image.clone();
        let mut disk = Disk::new(below.clone());
        let (mut volume, _) = mount(&mut disk, blocks, options).expect("it opens");
        drive(&mut volume, &mut disk, Nanos::new(1));
        for page in 0..PAGES {
            let (lba, data) = (page * 1024, stamped(1 << 20, page * 1024, 1));
            let range = Range { lba: Lba::new(lba), blocks: 1 };
            volume.write(1, range, Some(&data), false).expect("its page is in memory");
        }
        drive(&mut volume, &mut disk, Nanos::new(1));
        below = disk.view().clone();
        below.flip(entry.page.raw().into(), 900);
        let mut disk = Disk::new(below);
        volume.start_scrub(Nanos::ZERO).expect("it begins");
        drive(&mut volume, &mut disk, Nanos::new(2));
        let [damage] = volume.scrubbed().damage[..] else { panic!("{:?}", volume.scrubbed()) };
        assert!(damage.mended, "{damage:?}");
    }
}

/// All blocks of checkpoints on a backing, of old ones as well.
fn metas(image: &Image) -> Vec<(u64, MetaKind)> {
    let mut all = Vec::new();
    for at in 0..image.blocks() {
        let Ok(batch) = BatchHeader::decode(&image.get(at)[..], &UUID, at) else { continue };
        let onefold_format::volume::RecordList::Meta(list) = batch.records else { continue };
        all.extend((at + 1..).zip(list).map(|(at, record)| (at, record.kind)));
    }
    all
}

#[test]
fn labels_and_the_newest_root_are_written_anew() {
    let (image, oracle) = worked(2);
    let blocks = setup().backing_blocks;
    for at in label_addresses(blocks) {
        let (disk, report, stats) = scrub_open(&image, |below, _| below.flip(at, 900));
        let [damage] = report.damage[..] else { panic!("{report:?}") };
        assert_eq!((damage.finding, damage.mended), (Finding::Label { at }, true));
        assert_eq!(stats.sent(Sent::Scrub), 1);
        let found = inspect(&mut Disk::new(disk.view().clone()), blocks, true).expect("it opens");
        assert_eq!(found.findings, [], "every copy is whole");
    }
    let mut newest = 0;
    // It rots, or is as if it had never been written.
    let zeroes = |below: &mut Image, at| below.set(at, block(&[0; BLOCK]));
    for (at, rots) in root_addresses(blocks).into_iter().flat_map(|at| [(at, true), (at, false)]) {
        let (disk, report, _) =
            scrub_open(
                &image,
                |below, _| if rots { below.flip(at, 900) } else { zeroes(below, at) },
            );
        assert!(!report.is_damaged(), "{report:?}");
        for damage in &report.damage {
            let is_newest = damage.finding == Finding::NewestRoot { at };
            newest += u32::from(is_newest);
            assert_eq!(damage.mended, is_newest, "{damage:?}");
        }
        assert_whole(&disk, &oracle);
    }
    assert_eq!(newest, 2);
}

/// Whatever the host, the cleaner and power do, nothing is found where nothing is damaged, and every pass comes to an end.
fn beside(seed: u64, setup: Setup, mut rng: Rng) -> u64 {
    let mut rig = Rig::new(setup, seed);
    let mut passes = 0;
    for _ in 0..3 {
        for _ in 0..12 {
            let pause = pick(&mut rng, &[Nanos::ZERO, Nanos::new(1_000), Nanos::new(500_000)]);
            let volume = rig.volume.as_log_mut().expect("mode log");
            match rng.below(8) {
                0 => volume.stop_scrub(),
                1 => volume.scrub_every(Nanos::new(50_000_000), pause).unwrap_or(()),
                _ => volume.start_scrub(pause).unwrap_or(()),
            }
            work(&mut rig, &mut rng, 30);
        }
        let volume = rig.volume.as_log_mut().expect("mode log");
        passes += volume.stats().scrubs;
        let report = volume.scrubbed();
        assert_eq!(report.found, 0, "{report:?}, {setup:?}");
        if rng.below(2) == 0 {
            rig.assert_counts();
            let volume = rig.volume.as_log_mut().expect("mode log");
            let _ = volume.start_scrub(Nanos::ZERO);
            for _ in 0..100_000 {
                rig.step();
                if rig.volume.as_log().expect("mode log").scrubbed().state != ScrubState::Running {
                    break;
                }
            }
            let report = rig.volume.as_log().expect("mode log").scrubbed();
            assert_ne!(report.state, ScrubState::Running, "{report:?}, {setup:?}");
            assert_eq!(report.found, 0, "{report:?}, {setup:?}");
        }
        rig = rig.cut_and_reopen(0).unwrap_or_else(|what| panic!("{what}, {setup:?}"));
    }
    passes
}

#[test]
fn scrubs_beside_all_else() {
    let mut passes = 0;
    for_each_seed(("onefold-volume", "volume", "scrubs_beside_all_else"), 60, |seed| {
        let mut rng = Rng::new(seed);
        let setup =
            if seed % 3 == 0 { Setup::random_zoned(&mut rng) } else { Setup::random(&mut rng) };
        passes += beside(seed, setup, rng);
    });
    println!("{passes} passes of scrubs");
    assert!(passes > 0);
}

/// A copy of the label in a sequential zone is left to the next opening; data on zones is looked at like any other.
#[test]
fn scrubs_on_zones() {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    let setup = Setup::of(0, 1500, setup().options).on_zones(70, zones);
    let mut rng = Rng::new(3);
    let mut rig = Rig::new(setup, 3);
    for _ in 0..300 {
        assert!(rig.run(random_op(&mut rng, rig.oracle.blocks())));
        rig.step();
    }
    assert!(rig.settle());
    let rig = rig.close_and_reopen().expect("it opens");
    let layout = rig.volume.as_log().expect("mode log").layout().clone();
    let image = rig.disk.view();
    let mut clean = Disk::new(image.clone());
    let report = scrub(&mut clean, setup.backing_blocks, false, |_| ()).expect("it opens");
    assert_eq!((report.found, report.state), (0, ScrubState::Done));
    let mut damaged = image.clone();
    damaged.flip(layout.labels()[0], 900);
    let report =
        scrub(&mut Disk::new(damaged), setup.backing_blocks, false, |_| ()).expect("opens");
    let [damage] = report.damage[..] else { panic!("{report:?}") };
    assert_eq!(damage.finding, Finding::Label { at: layout.labels()[0] });
    assert!(!report.is_damaged(), "the others are whole");
}

/// Blocks that cannot be read once are no damage. Where the first read of a log segment fails, its header is read by itself, and the next one
/// begins with a block.
#[test]
fn a_read_that_fails_once_is_no_damage() {
    let (image, _) = worked(1);
    for (request, next) in
        (1..60).flat_map(|request| [(request, None), (request, Some(request + 2))])
    {
        let mut disk = Disk::new(image.clone());
        let (mut volume, _) =
            mount(&mut disk, setup().backing_blocks, setup().options).expect("it opens");
        drive(&mut volume, &mut disk, Nanos::new(1));
        volume.start_scrub(Nanos::ZERO).expect("it begins");
        let (mut count, mut now) = (0, Nanos::new(2));
        while volume.scrubbed().state == ScrubState::Running {
            volume.pump(now);
            let Some(io) = volume.poll_io() else {
                now = volume.poll_timeout().unwrap_or(now).max(now);
                continue;
            };
            count += 1;
            let result = if count == request || Some(count) == next {
                Err(onefold_volume::IoFailed::Error)
            } else {
                onefold_volume::execute(&mut volume, &mut disk, io)
            };
            volume.completed(now, io.id, result);
        }
        assert_eq!(volume.scrubbed().found, 0, "request {request}, {next:?}");
    }
}

/// While the host uses the volume, a scrub keeps longer pauses.
#[test]
fn scrubs_make_room_for_the_host() {
    let (image, _) = worked(1);
    let reads = |busy: bool| {
        let mut disk = Disk::new(image.clone());
        let (mut volume, _) =
            mount(&mut disk, setup().backing_blocks, setup().options).expect("it opens");
        drive(&mut volume, &mut disk, Nanos::new(1));
        volume.start_scrub(Nanos::new(1_000)).expect("it begins");
        for step in 1..60_u64 {
            if busy {
                let mut plan = onefold_volume::ReadPlan::default();
                let range = Range { lba: Lba::new(1), blocks: 1 };
                volume.read(range, None, &mut plan).expect("its page is in memory");
                volume.end_read(&plan);
            }
            drive(&mut volume, &mut disk, Nanos::new(1 + step * 1_000));
        }
        volume.scrubbed().read
    };
    let (idle, busy) = (reads(false), reads(true));
    assert!(busy > 0 && busy * 2 < idle, "{busy} beside the host, {idle} alone");
}
