//! Markers: rot of what was flushed last is no power cut.

use onefold_format::volume::{BatchHeader, DecodedBatch};
use onefold_units::{Lba, Nanos};
use onefold_volume::{MountError, Options, Range, Sent, drive, mount, mount_read_only};

use crate::harness::disk::Disk;
use crate::harness::errors::assert_right_or_error;
use crate::harness::image::{Image, block};
use crate::harness::oracle::Oracle;
use crate::harness::rig::{Op, Order, Rig, open};
use crate::harness::setup::{OPTIONS, Setup, UUID};
use crate::harness::stamp::BLOCK;
use crate::harness::zones::ZoneSetup;

const AGE: Nanos = Nanos::new(1_000_000);

/// Volumes without and with zones.
fn setups(marker_age: Nanos) -> [Setup; 2] {
    let zones = ZoneSetup { size: 128, capacity: 64, limit: Some(4), conventional: 0 };
    let plain = Setup::of(64 * 134, 900, Options { marker_age, ..OPTIONS });
    [plain, plain.on_zones(134, zones)]
}

/// A volume on which the host flushed after so many writes, and then let it rest.
fn rested(setup: Setup, writes: u64) -> (Image, Oracle) {
    let mut rig = Rig::new(setup, 5);
    rig.order = Order::InTurn;
    for n in 0..writes {
        assert!(rig.run(Op::Write { lba: 10 * n, blocks: 3, fua: false }) && rig.settle());
    }
    assert!(rig.run(Op::Flush) && rig.settle());
    let rests = *rig.volume.stats();
    // Other timeouts are far away.
    while rig.volume.poll_timeout().is_some_and(|at| at.get() < 1 << 49) {
        rig.step();
    }
    assert!(rig.settle());
    let marked = setup.options.marker_age == AGE;
    let rested = rig.volume.stats().since(&rests);
    assert_eq!(
        (rested.batches, rested.markers),
        (u64::from(marked), u64::from(marked)),
        "{rested:?} {:?}",
        rig.volume.poll_timeout()
    );
    (rig.disk.view().clone(), rig.oracle)
}

/// The headers of the host on a backing with their places, the last ones of a number of batches.
fn last_headers(image: &Image, count: usize) -> Vec<(u64, DecodedBatch)> {
    let header = |at| BatchHeader::decode(&image.get(at)[..], &UUID, at).ok().map(|b| (at, b));
    let mut all: Vec<_> = (0..image.blocks()).filter_map(header).collect();
    all.sort_by_key(|(_, batch)| batch.header.seq);
    all.split_off(all.len() - count)
}

/// Whether a volume is refused as one that lost what was durable; it can be looked at then.
fn is_refused(image: &Image, setup: &Setup) -> bool {
    match open(&mut Disk::new(image.clone()), setup) {
        Ok(_) => false,
        Err(MountError::Lost { .. }) => {
            let mut disk = Disk::new(image.clone());
            let opened = mount_read_only(&mut disk, setup.file_blocks, setup.options);
            let (_, recovery, durable) = opened.expect("it can be read");
            assert!(recovery.seq < durable);
            true
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn rot_of_what_was_flushed_last_is_told() {
    for setup in setups(AGE) {
        // The first batch of a log segment, the only one, and several.
        for writes in [1, 2, 5] {
            let (image, oracle) = rested(setup, writes);
            let (state, batches) = (oracle.state_at(u64::MAX), usize::try_from(writes).unwrap());
            for (at, batch) in &last_headers(&image, batches + 1)[..batches] {
                let mut damaged = image.clone();
                damaged.flip(*at, 900);
                assert!(is_refused(&damaged, &setup), "the header at {at} of {writes}");
                let mut damaged = image.clone();
                damaged.flip(at + 2, 900);
                let mut disk = Disk::new(damaged);
                let (mut volume, recovery) = open(&mut disk, &setup).expect("it opens");
                assert!(recovery.seq >= batch.header.seq.raw());
                let errors = assert_right_or_error(&mut *volume, &mut disk, &state);
                assert_eq!((errors.blocks, errors.pages), (1, 0), "block {} of {writes}", at + 2);
            }
        }
    }
}

/// The test of the test: without a marker the last batch is silently gone.
#[test]
fn without_a_marker_it_is_a_power_cut() {
    for setup in setups(Nanos::new(1 << 50)) {
        let (image, _) = rested(setup, 2);
        let (at, batch) = last_headers(&image, 1).remove(0);
        for rotten in [at, at + 1] {
            let mut damaged = image.clone();
            damaged.flip(rotten, 900);
            let (_, recovery) = open(&mut Disk::new(damaged), &setup).expect("it opens");
            assert!(recovery.seq < batch.header.seq.raw());
        }
    }
}

#[test]
fn a_marker_that_is_torn_or_lost_does_no_harm() {
    for setup in setups(AGE) {
        let (image, oracle) = rested(setup, 3);
        let (at, marker) = last_headers(&image, 1).remove(0);
        assert_eq!(marker.records.as_records().len() + marker.trims.len(), 0);
        let mut torn = **image.get(at);
        torn[512..].fill(0x77);
        torn[..48].fill(0);
        for bytes in [[0; BLOCK], [0x99; BLOCK], torn] {
            let mut cut = image.clone();
            cut.set(at, block(&bytes));
            Rig::open(setup, Disk::new(cut), oracle.clone(), 1).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// After the marker comes a flush for it, a checkpoint for what was written, and then nothing.
#[test]
fn an_idle_volume_rests() {
    let second = 1_000_000_000;
    let mut setup = setups(AGE)[0];
    setup.options.flush_age = Nanos::new(5 * second);
    for (checkpoint_age, checkpoints) in [(1 << 50, 0), (30 * second, 1)] {
        setup.options.checkpoint_age = Nanos::new(checkpoint_age);
        let mut disk = setup.format();
        let (mut volume, _) = mount(&mut disk, setup.file_blocks, setup.options).expect("it opens");
        drive(&mut volume, &mut disk, Nanos::new(1));
        let before = *volume.stats();
        let range = Range { lba: Lba::new(7), blocks: 1 };
        volume.write(1, range, Some(&[7; BLOCK]), false).expect("an idle volume");
        drive(&mut volume, &mut disk, Nanos::new(2));
        volume.flush(2).expect("an idle volume");
        drive(&mut volume, &mut disk, Nanos::new(3));
        assert_eq!(volume.stats().markers, 0);
        drive(&mut volume, &mut disk, Nanos::new(3 + AGE.get()));
        let marked = volume.stats().since(&before);
        assert_eq!((marked.markers, marked.batches), (1, 2));
        assert_eq!((marked.sent(Sent::User), marked.sent(Sent::Header)), (1, 2));
        for second in 1..1000 {
            drive(&mut volume, &mut disk, Nanos::new(second * 1_000_000_000));
        }
        let rested = volume.stats().since(&before);
        assert_eq!((rested.markers, rested.checkpoints), (1, checkpoints));
        assert_eq!(disk.volatile(), 0, "the marker is flushed as well");
        let age = volume.poll_timeout().map(Nanos::get);
        assert!(age.is_none_or(|at| at > 1 << 49), "{age:?}");
    }
}
